"""The HTML report in Chromium: filters, links, keys, themes, sizes, hostile texts."""

import json
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from memconform.conformance.results import Result
from memconform.runs.results import QuestionResult
from memconform.scoring.statuses import QuestionStatus
from tests.browser.conftest import Open, Tab, violations
from tests.program import PROGRAM
from tests.run_results import question, write_run
from tests.unit.reports.test_report_exports import HOSTILE
from tests.unit.reports.test_report_overview import conform_file

_ROWS = [
    question("q1", text="Where is the heron?"),
    question("q2", QuestionStatus.INCORRECT, text="What does the wren eat?", answer="Stones."),
    question("q3", QuestionStatus.TIMEOUT, text="Who counts the gulls?"),
    question("q4", text="When do swifts leave?", answer="In August, at night.", tags=["dates"]),
]
_VIEWS = ("/", "/questions", "/question?id=q2", "/runs", "/conformance")


def _files(folder: Path, rows: Sequence[QuestionResult] = _ROWS) -> list[Path]:
    other = [
        rows[0],
        rows[1],
        question("q3", text=rows[2].question, paths=("c.md",)),
        question(
            "q4", text=rows[3].question, tags=["dates"], answer="In July, at night.",
            paths=("b.md", "a.md"),
        ),
    ]  # fmt: skip
    return [
        write_run(folder / "go.json", "go", rows),
        write_run(folder / "py.json", "py", rows),
        write_run(folder / "ts.json", "ts", other),
        conform_file(folder / "conform.json", {"a": Result.PASS, "b": Result.FAIL}),
    ]


def _ids(tab: Tab) -> list[str]:
    return tab.texts("#question-table tbody th a")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", _VIEWS)
def test_every_view_is_accessible_in_both_themes(
    open_report: Open, tmp_path: Path, packages: Path, view: str, scheme: str
) -> None:
    tab = open_report(_files(tmp_path), scheme=scheme)
    tab.go(view)
    assert violations(tab, packages) == []


def test_the_check_of_accessibility_finds_a_violation(
    open_report: Open, tmp_path: Path, packages: Path
) -> None:
    tab = open_report(_files(tmp_path))
    tab.go("/")
    tab.page.evaluate("document.querySelector('main').append(document.createElement('button'))")
    assert "button-name" in " ".join(violations(tab, packages))


@pytest.mark.parametrize("view", _VIEWS)
def test_no_view_is_wider_than_a_small_phone(open_report: Open, tmp_path: Path, view: str) -> None:
    tab = open_report(_files(tmp_path), width=320)
    tab.go(view)
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= 320


def test_dark_mode_is_dark_and_charts_follow_it(open_report: Open, tmp_path: Path) -> None:
    colours = []
    for scheme in ("light", "dark"):
        tab = open_report(_files(tmp_path), scheme=scheme)
        tab.go("/")
        colours.append(
            tab.page.evaluate(
                """[getComputedStyle(document.documentElement).backgroundColor,
                    getComputedStyle(document.querySelector("svg text")).fill]"""
            )
        )
    (light_page, light_text), (dark_page, dark_text) = colours
    assert light_page == "rgb(255, 255, 255)"
    assert dark_page != light_page
    assert dark_text != light_text


def test_the_front_page_names_the_sdk_the_stage_and_leads_to_the_question(
    open_report: Open, tmp_path: Path
) -> None:
    tab = open_report(_files(tmp_path)[:3])
    tab.go("/")
    tab.page.click("text=ts differs from go and py on 1 of")
    tab.page.wait_for_selector("#match-count:not(:empty)")
    assert _ids(tab) == ["q4"]
    tab.page.click("#question-table a")
    tab.page.wait_for_selector("#question-page .side")
    assert tab.texts("#h-question") == ["When do swifts leave?"]
    assert "go and ts differ at the stage order" in tab.page.inner_text("#question-page")
    assert tab.texts("#question-page mark") == ["July,"]
    repeated = "memconform run --dataset birds --sdk ts --ids q4"
    assert repeated in tab.page.inner_text("#question-page")


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("", ["q1", "q2", "q3", "q4"]),
        ("q=swifts", ["q4"]),
        ("q=AUGUST+night", ["q4"]),
        ("q=stones", ["q2"]),
        ("q=c.md", ["q3"]),
        ("status=incorrect", ["q2"]),
        ("status=unmeasured", ["q3"]),
        ("status=unmeasured&sdk=ts", []),
        ("tag=dates", ["q4"]),
        ("stage=order", ["q4"]),
        ("differs=1", ["q4"]),
        ("differs=1&sdk=go", []),
        ("sort=question", ["q2", "q4", "q1", "q3"]),
        ("sort=question&dir=desc", ["q3", "q1", "q4", "q2"]),
        ("sort=ms:0&dir=desc", ["q1", "q2", "q4", "q3"]),
    ],
)
def test_a_link_leads_to_the_filtered_questions(
    open_report: Open, tmp_path: Path, query: str, ids: list[str]
) -> None:
    tab = open_report(_files(tmp_path)[:3])
    tab.go(f"/questions?{query}")
    assert tab.texts("#match-count") == [f"{len(ids)} of 4 questions"]
    assert _ids(tab) == ids


def test_filters_are_kept_in_the_address_and_by_back(open_report: Open, tmp_path: Path) -> None:
    tab = open_report(_files(tmp_path)[:3])
    tab.go("/questions")
    tab.page.fill("[name=q]", "swifts")
    tab.page.select_option("#filters [name=sdk]", "ts")
    tab.page.check("[name=differs]")
    tab.wait("document.querySelectorAll('#question-table tr.row').length === 1")
    assert re.search(r"#/questions\?g=[0-9a-f]{10}&q=swifts&sdk=ts&differs=1$", tab.page.url)
    tab.page.click("#question-table a")
    tab.page.wait_for_selector("#question-page .side")
    tab.page.go_back()
    tab.page.wait_for_selector('section[data-view="questions"]:not([hidden])')
    assert tab.page.input_value("[name=q]") == "swifts"
    assert _ids(tab) == ["q4"]
    tab.page.click("text=Clear")
    tab.wait("document.querySelectorAll('#question-table tr.row').length === 4")


def test_regressions_are_marked_and_filtered(open_report: Open, tmp_path: Path) -> None:
    name = "q 2&g=9#é"
    before = [question("q1"), question(name, text=_ROWS[1].question)]
    after = [question("q1"), question(name, QuestionStatus.INCORRECT, text=_ROWS[1].question)]
    old = write_run(tmp_path / "old.json", "go", before, run_id="old")
    now = write_run(tmp_path / "go.json", "go", after, started_at="2026-02-01T00:00:00+00:00")
    tab = open_report([now], [old])
    tab.go("/")
    tab.page.click("text=Regressions since the baseline >> xpath=following::a[1]")
    tab.page.wait_for_selector("#question-page .side")
    assert tab.texts("#h-question") == [_ROWS[1].question]
    tab.go("/questions?regressed=1")
    assert _ids(tab) == [name]
    assert tab.page.is_visible("text=only regressions")


def test_without_a_baseline_there_is_no_filter_for_regressions(
    open_report: Open, tmp_path: Path
) -> None:
    tab = open_report(_files(tmp_path)[:3])
    tab.go("/questions")
    assert not tab.page.is_visible("text=only regressions")


def test_the_keyboard_alone_leads_to_a_question_and_on(open_report: Open, tmp_path: Path) -> None:
    tab = open_report(_files(tmp_path)[:3])
    tab.go("/")
    tab.page.keyboard.press("Tab")
    assert tab.page.evaluate("document.activeElement.textContent") == "Skip to the content"
    tab.page.keyboard.press("/")
    tab.wait("document.activeElement.name === 'q'")
    tab.page.keyboard.type("the")
    tab.wait("document.querySelectorAll('#question-table tr.row').length === 3")
    tab.page.focus("#question-table")
    for _ in range(2):
        tab.page.keyboard.press("ArrowDown")
    assert tab.page.evaluate("document.activeElement.textContent") == "q2"
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_selector("#question-page .side")
    assert tab.page.evaluate("document.activeElement.id") == "h-question"
    tab.page.keyboard.press("j")
    tab.wait("document.title.startsWith('Who counts')")
    tab.page.keyboard.press("k")
    tab.wait("document.title.startsWith('What does')")


def test_only_visible_rows_exist_and_the_last_is_reached(open_report: Open, tmp_path: Path) -> None:
    rows = [question(f"q{number:05}") for number in range(3_000)]
    tab = open_report([write_run(tmp_path / "go.json", "go", rows)])
    tab.go("/questions")
    assert len(_ids(tab)) < 100
    assert tab.page.get_attribute("#question-table table", "aria-rowcount") == "3001"
    tab.page.focus("#question-table a")
    tab.page.keyboard.press("End")
    tab.wait("document.activeElement.textContent === 'q02999'")
    assert "q02999" in _ids(tab)
    assert len(_ids(tab)) < 100


def test_a_failure_shows_its_code_and_command(open_report: Open, tmp_path: Path) -> None:
    tab = open_report(_files(tmp_path)[:3])
    tab.go("/question?id=q3")
    text = tab.page.inner_text("#question-page")
    assert "timeout: no event in 30 s" in text
    assert "curl -X POST …" in text
    assert "incorrect" not in text


def test_an_unknown_question_is_reported(open_report: Open, tmp_path: Path) -> None:
    tab = open_report(_files(tmp_path)[:1])
    tab.go("/question?id=none")
    assert 'These runs have no question "none".' in tab.page.inner_text("#question-page")


def test_rules_open_with_what_was_expected(open_report: Open, tmp_path: Path) -> None:
    tab = open_report(_files(tmp_path))
    tab.go("/conformance")
    tab.page.wait_for_selector("#rules details")
    assert tab.texts("#rules summary code") == ["core.health"]
    tab.page.wait_for_selector("#rules article")
    assert "b#a" in tab.page.inner_text("#rules")
    assert "MUST" in tab.page.inner_text("#rules")
    tab.page.select_option("#rule-filters [name=only]", "untested")
    tab.wait("document.querySelectorAll('#rules > details').length > 50")


@pytest.mark.parametrize("text", [*HOSTILE, "x" * 1_000_000, 'id "with" spaces & más#?=/'])
def test_hostile_texts_are_shown_as_text(open_report: Open, tmp_path: Path, text: str) -> None:
    row = question(
        text[:2_000], QuestionStatus.INCORRECT, text=text, answer=text, paths=(text[:500],),
        tags=[text[:200]], reason=text,
    )  # fmt: skip
    tab = open_report([write_run(tmp_path / "go.json", "go", [row], dataset=text[:100])])
    tab.go("/questions")
    tab.page.click("#question-table a")
    tab.page.wait_for_selector("#question-page .side")
    shown = tab.page.text_content("#question-page .answer") or ""
    hidden = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")
    assert not hidden.search(tab.page.text_content("main") or "")
    escaped = hidden.sub(lambda match: ascii(match[0])[1:-1], text)
    assert shown.startswith(escaped[:12].partition("\n")[0])
    assert tab.page.locator("a[href^=javascript]").count() == 0
    assert tab.page.evaluate("document.scripts.length") == len(
        re.findall("<script", (tmp_path / "report-0.html").read_text())
    )


def test_without_scripts_the_summaries_are_there(open_report: Open, tmp_path: Path) -> None:
    tab = open_report(_files(tmp_path))
    context = tab.page.context.browser
    assert context is not None
    plain = context.new_context(java_script_enabled=False)
    page = plain.new_page()
    page.goto(tab.base)
    assert "fails 1 of 2 checks" in page.inner_text("h1 >> nth=0")
    assert page.is_visible("text=Without JavaScript")
    assert page.is_visible("text=By rule")
    plain.close()


def test_printing_shows_every_summary(open_report: Open, tmp_path: Path) -> None:
    tab = open_report(_files(tmp_path))
    tab.go("/")
    tab.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    shown = tab.page.evaluate(
        """[...document.querySelectorAll("section[data-view]:not([hidden])")]
           .map((section) => section.dataset.view)"""
    )
    assert {"overview", "runs", "conformance"} <= set(shown)
    tab.page.evaluate("dispatchEvent(new Event('afterprint'))")
    tab.page.wait_for_selector('section[data-view="runs"][hidden]', state="attached")


def test_ctrf_follows_the_schema_of_its_authors(tmp_path: Path, packages: Path) -> None:
    """Held to the schema that ctrf.io publishes, not only to our model of it."""
    import jsonschema  # noqa: PLC0415 - takes long to import

    [schema] = (packages / "ctrf" / "dist").glob("ctrf-schema-*.json")
    command: list[str | Path] = [
        PROGRAM,
        "report",
        "--format",
        "ctrf",
        *_files(tmp_path),
        "-o",
        "-",
    ]
    written = subprocess.run(command, check=True, capture_output=True, cwd=tmp_path).stdout
    report = json.loads(written)
    jsonschema.validate(report, json.loads(schema.read_text(encoding="utf-8")))
    assert report["results"]["summary"]["other"] == 2


def test_of_two_quick_changes_the_last_one_is_shown(open_report: Open, tmp_path: Path) -> None:
    rows = [question(f"q{number:04}", text=f"Question {number}?") for number in range(500)]
    tab = open_report([write_run(tmp_path / "go.json", "go", rows)])
    tab.go("/questions")
    tab.page.evaluate(
        """() => {
          location.hash = "#/question?id=q0450";
          setTimeout(() => { location.hash = "#/question?id=q0002"; }, 1);
        }"""
    )
    tab.wait("document.title.startsWith('Question 2?')")
    tab.page.wait_for_timeout(300)
    assert tab.texts("#h-question") == ["Question 2?"]


def test_long_answers_that_differ_everywhere_are_shown(open_report: Open, tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / f"{sdk}.json", sdk, [question("q", answer=f"{sdk}word " * 130_000)])
        for sdk in ("go", "py")
    ]
    tab = open_report(runs)
    tab.go("/question?id=q")
    assert len(tab.texts("#question-page .answer")) == 2
    assert tab.page.locator("#question-page mark").count() == 1


@pytest.mark.parametrize("query", ["g=", "sort=ms:9", "sort=none", "status=none"])
def test_an_address_out_of_range_shows_what_there_is(
    open_report: Open, tmp_path: Path, query: str
) -> None:
    tab = open_report(_files(tmp_path)[:3])
    tab.go(f"/questions?{query}")
    assert tab.texts("#match-count")[0].endswith("of 4 questions")


def test_a_link_to_runs_of_another_report_says_so(open_report: Open, tmp_path: Path) -> None:
    tab = open_report(_files(tmp_path)[:3])
    tab.page.goto(f"{tab.base}#/questions?g=0123456789")
    tab.page.wait_for_selector("text=this report has no such runs")
    tab.problems.clear()
    tab.go("/questions")
    assert tab.page.locator("[data-error]").count() == 0


def test_skipping_to_the_content_stays_in_the_view(open_report: Open, tmp_path: Path) -> None:
    tab = open_report(_files(tmp_path)[:3])
    tab.go("/questions?differs=1")
    tab.page.keyboard.press("Tab")
    tab.page.keyboard.press("Enter")
    assert tab.page.evaluate("document.activeElement.id") == "main"
    assert tab.page.url.endswith("#/questions?differs=1")


def test_the_whole_table_is_printed(open_report: Open, tmp_path: Path) -> None:
    rows = [question(f"q{number:04}") for number in range(400)]
    tab = open_report([write_run(tmp_path / "go.json", "go", rows)])
    tab.go("/questions")
    assert len(_ids(tab)) < 100
    tab.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert len(_ids(tab)) == 400


def test_sorting_keeps_the_focus(open_report: Open, tmp_path: Path) -> None:
    tab = open_report(_files(tmp_path)[:3])
    tab.go("/questions")
    tab.page.click("#question-table thead button >> nth=1")
    tab.wait("location.hash.includes('sort=question')")
    assert tab.page.evaluate("document.activeElement.dataset.column") == "question"


def test_a_command_copies_what_it_shows(open_report: Open, tmp_path: Path) -> None:
    tab = open_report([write_run(tmp_path / "go.json", "go", [question("q\x03; touch x")])])
    tab.go("/questions")
    tab.page.click("#question-table a")
    tab.page.wait_for_selector("#question-page .side")
    command = tab.texts("#question-page .command pre")[0]
    assert command.endswith("--ids $'q\\x03; touch x'")


def test_rules_that_were_only_not_applicable_are_not_green(
    open_report: Open, tmp_path: Path
) -> None:
    tab = open_report([conform_file(tmp_path / "c.json", {"a": Result.NOT_APPLICABLE})])
    tab.go("/conformance?only=all&q=core.health")
    tab.page.wait_for_selector("#rules summary")
    assert tab.page.locator("#rules .grade-good").count() == 0
    assert "not tested" in tab.page.inner_text("#rules")
