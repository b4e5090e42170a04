"""The static parts of the HTML report, and the data inside it."""

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from memconform import redaction
from memconform.bench.records import BenchReport, ErrataReport
from memconform.errors import UsageError
from memconform.reports.html import document
from memconform.reports.html.blocks import Blocks
from memconform.reports.html.charts import draw
from memconform.reports.html.document import write_html
from memconform.reports.html.figures import quality_and_cost
from memconform.reports.overview.overview import Overview
from memconform.runs.results import QuestionResult
from memconform.scoring.statuses import QuestionStatus
from memconform.storage.sink import Sink
from tests.conftest import CHECKOUT
from tests.run_results import question, write_run
from tests.unit.bench_results import write_bench
from tests.unit.reports.test_report_exports import HOSTILE

_QUESTIONS = [
    question("q1"),
    question("q2", QuestionStatus.INCORRECT, answer="Elsewhere."),
    question("q3", QuestionStatus.TIMEOUT),
]


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.scripts: list[dict[str, str | None]] = []
        self.listeners: list[str] = []
        self.addresses: list[str] = []
        self.styles: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "script":
            self.scripts.append(dict(attrs))
        for name, value in attrs:
            if name.startswith("on"):
                self.listeners.append(name)
            if name in ("src", "href", "action", "srcset", "data", "formaction"):
                self.addresses.append(value or "")
            if name == "style":
                self.styles.append(value or "")


def html_of(folder: Path, *runs: Path) -> str:
    pieces: list[bytes] = []
    with Overview.load([str(run) for run in runs], [], folder) as overview:
        write_html(Sink(pieces.append), overview)
    return b"".join(pieces).decode()


def blocks_of(page: str) -> dict[str, Any]:
    found = re.findall(r'<script type="application/gzip" data-block="([^"]+)">([^<]+)', page)
    return {name: _decoded(data) for name, data in found}


def _decoded(data: str) -> Any:
    return json.loads(gzip.decompress(base64.b64decode(data)))


def elements(page: str) -> _Elements:
    parser = _Elements()
    parser.feed(page)
    return parser


@pytest.fixture
def page(tmp_path: Path) -> str:
    runs = [write_run(tmp_path / f"{sdk}.json", sdk, _QUESTIONS) for sdk in ("go", "py")]
    return html_of(tmp_path, *runs)


def test_the_page_needs_nothing_else(page: str) -> None:
    parsed = elements(page)
    assert [script.get("src") for script in parsed.scripts] == [None] * len(parsed.scripts)
    assert all(address.startswith("#") for address in parsed.addresses)
    assert parsed.listeners == []
    # The policy forbids them, so that they would have no effect.
    assert parsed.styles == []
    assert "url(" not in page


def test_the_policy_allows_exactly_the_own_script_and_style(page: str) -> None:
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    for tag in ("script", "style"):
        [content] = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


def test_an_asset_that_would_end_its_element_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "_SCRIPTS", ("base.js",))
    monkeypatch.setattr(document, "_read", lambda name: f"'</script>' // {name}")
    with pytest.raises(ValueError, match="end its own element"):
        document._asset(document._read("base.js"))


def test_the_columns_are_those_of_the_results(page: str) -> None:
    blocks = blocks_of(page)
    columns = blocks["questions-0"]
    assert columns["ids"] == ["q1", "q2", "q3"]
    statuses = blocks["meta"]["statuses"]
    assert [[statuses[code] for code in run] for run in columns["status"]] == [
        ["correct", "incorrect", "timeout"]
    ] * 2
    assert columns["score"] == [[1.0, 0.0, None]] * 2
    # The second SDK's equal answers are stored once.
    assert blocks["answers-0"]["answers"] == [["By the pond.", 0], ["Elsewhere.", 0], [None, None]]


def _changed(answer: str) -> Callable[[QuestionResult], QuestionResult]:
    return lambda result: result.model_copy(update={"answer": answer})


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_stay_data(tmp_path: Path, text: str) -> None:
    rows = [
        question(
            text, QuestionStatus.INCORRECT, text=text, answer=text, paths=(text,), tags=[text],
            reason=text,
        )
    ]  # fmt: skip
    page = html_of(tmp_path, write_run(tmp_path / "go.json", "go", rows, dataset=text))
    parsed = elements(page)
    kinds = [script.get("type") for script in parsed.scripts]
    assert kinds.count(None) == 1
    assert set(kinds) == {None, "application/gzip"}
    assert all(address.startswith("#") for address in parsed.addresses)
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert blocks_of(page)["questions-0"]["ids"] == [text]


@pytest.mark.parametrize("rows", [0, 1, 999, 1_000, 1_001, 2_002])
def test_long_columns_are_encoded_in_pieces(rows: int) -> None:
    """All rows at once took a gigabyte for 100,000 questions."""
    table: dict[str, Any] = {
        "ids": [f'q"{number}' for number in range(rows)],
        "score": [[None if number % 2 else 0.5 for number in range(rows)], []],
        "none": [],
        "perBlock": 100,
        "long": [f"row {number}" for number in range(1_500)],
    }
    blocks = Blocks()
    blocks.add("x", table)
    blocks.add("y", {"long": [float("nan"), *table["long"]]})
    decoded = {name: _decoded(data) for name, data in blocks}
    assert decoded == {"x": table, "y": {"long": ["nan", *table["long"]]}}


def test_details_are_in_blocks_of_a_hundred(tmp_path: Path) -> None:
    rows = [question(f"q{number}") for number in range(250)]
    blocks = blocks_of(html_of(tmp_path, write_run(tmp_path / "go.json", "go", rows)))
    assert [len(blocks[f"details-0-{number}"]) for number in range(3)] == [100, 100, 50]


def test_secrets_are_masked_in_page_and_data(tmp_path: Path) -> None:
    redaction.hide("canary-5b1e77aa")
    rows = [question("q1", text="canary-5b1e77aa?", answer="It is canary-5b1e77aa.")]
    page = html_of(tmp_path, write_run(tmp_path / "go.json", "go", rows))
    assert "canary-5b1e77aa" not in page
    assert "canary-5b1e77aa" not in json.dumps(blocks_of(page))


def test_a_block_decodes_to_what_was_added() -> None:
    blocks = Blocks()
    value = {"a": ["\ud800", "é\u2028", None, 1.5, "</script>"]}
    blocks.add("x", value)
    [(name, data)] = blocks
    assert name == "x"
    assert _decoded(data) == value


def test_a_chart_follows_the_theme_and_has_its_data_beside_it() -> None:
    spec = {
        "mark": "bar",
        "encoding": {"x": {"field": "v", "type": "quantitative"}, "y": {"field": "n"}},
    }
    chart = draw("T & <t>", spec, [{"n": "<b>\x1b", "v": 2.0}], {"name": "n", "value": "v"})
    assert "var(--ink)" in chart.svg
    assert "#01" not in chart.svg
    assert 'role="img" aria-label="T &amp; &lt;t&gt;"' in chart.svg
    assert "<b>" not in chart.svg
    assert chart.rows == [["<b>\\x1b", "2"]]


def test_an_exchange_outside_the_run_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("not yours")
    error = {"code": "timeout", "message": "m", "wire": "../secret.txt"}
    rows = [question("q1", QuestionStatus.TIMEOUT, error=error)]
    run = write_run(tmp_path / "run" / "go.json", "go", rows)
    [details] = blocks_of(html_of(tmp_path, run))["details-0-0"]
    assert "wire" not in details["runs"][0]


def test_an_exchange_beside_the_result_is_shown(tmp_path: Path) -> None:
    run_folder = tmp_path / "run"
    error = {"code": "timeout", "message": "m", "wire": "wire/0.http"}
    rows = [question("q1", QuestionStatus.TIMEOUT, error=error)]
    run = write_run(run_folder / "go.json", "go", rows)
    (run_folder / "wire").mkdir()
    (run_folder / "wire" / "0.http").write_text("> POST /ask\n" + "x" * 40_000)
    [details] = blocks_of(html_of(tmp_path, run))["details-0-0"]
    wire = details["runs"][0]["wire"]
    assert wire.startswith("> POST /ask")
    assert wire.endswith("(the rest is in wire/0.http)")


def test_numbers_that_json_has_not_are_text() -> None:
    rows = [question("q1", trace={"effectiveMode": "bm25", "searchMs": float("nan")})]
    blocks = Blocks()
    blocks.add("x", rows[0].trace)
    [(_, data)] = blocks
    assert json.loads(gzip.decompress(base64.b64decode(data)))["searchMs"] == "nan"


@pytest.mark.parametrize(
    ("command", "sdk", "words"),
    [
        (["run", "--sdk", "all", "--html", "--dataset", "lme"], "go",
         ["run", "--dataset", "lme", "--sdk", "go"]),
        (["run", "--sdk", "go2", "--sdk", "go", "--limit=5"], "go", ["run", "--sdk", "go"]),
        (["run", "--sdk", "sdks/agents/x/sdk.toml", "--sdk", "ts"], "ts", ["run", "--sdk", "ts"]),
        (["run", "--sdk", "go", "--sdk", "ts", "--sdk", "/x/plant/sdk.toml"], "py",
         ["run", "--sdk", "/x/plant/sdk.toml"]),
        (["run", "--sdk", "my/daemon/sdk.toml", "--ids", "a"], "mine",
         ["run", "--sdk", "my/daemon/sdk.toml"]),
        (["score", "RUN"], "go",
         ["run", "--data", "birds.jsonl", "--scenario", "ask-basic", "--mode", "bm25", "--sdk",
          "go"]),
    ],
)  # fmt: skip
def test_a_question_is_repeated_by_the_command_that_asked_it(
    tmp_path: Path, command: list[str], sdk: str, words: list[str]
) -> None:
    run = write_run(tmp_path / "r.json", sdk, [question("q")])
    loaded = json.loads(run.read_text())
    loaded["provenance"]["command"] = ["memconform", *command]
    run.write_text(json.dumps(loaded))
    assert blocks_of(html_of(tmp_path, run))["meta"]["groups"][0]["runs"][0]["repeat"] == [
        "memconform", *words,
    ]  # fmt: skip


def _tagged(path: Path, statuses: list[QuestionStatus]) -> Path:
    rows = [
        question(f"q{n}", status, tags=["dates" if n % 2 else "facts"], cluster=f"c{n // 20}")
        for n, status in enumerate(statuses)
    ]
    return write_run(path, "go", rows)


def test_a_tag_that_was_not_measured_completely_has_no_rate(tmp_path: Path) -> None:
    right, lost = QuestionStatus.CORRECT, QuestionStatus.TIMEOUT
    page = html_of(tmp_path, _tagged(tmp_path / "go.json", [right, lost] * 10))
    chart = page.partition("Data of “Pass rate by tag: ")[2].partition("</table>")[0]
    assert "facts" in chart
    assert "dates" not in chart


def test_a_run_that_was_not_measured_completely_is_in_no_chart_of_rates(tmp_path: Path) -> None:
    page = html_of(tmp_path, _tagged(tmp_path / "go.json", [QuestionStatus.TIMEOUT] * 20))
    assert "Pass rate by SDK" not in page
    assert "Cost and quality" not in page


def test_a_bench_is_shown_with_each_view_and_its_notes(tmp_path: Path) -> None:
    """The page had the raw view alone, and not a word of the errata."""
    errata = ErrataReport(name="file", shipped=False, disputed=2, corrected=3, noted=0, ceilings=[])
    rankings = {"q1": ["q1-gold"], "q2": ["other"]}
    bench = write_bench(
        tmp_path / "bench.json",
        {("go", "bm25"): rankings, ("py", "bm25"): {"q1": None, "q2": None}},
        views=("all", "undisputed"),
        errata=errata,
    )
    page = html_of(tmp_path, bench)
    assert page.count("<h3>undisputed: 2 queries with gold</h3>") == 1
    assert "undisputed omits 2 disputed queries and corrects the gold of 3; all is raw" in page
    tables = page.split("Metrics of file")[1:]
    # go's figures and py's reasons are in both.
    assert [(table.count("50.0 ("), table.count("not measured: ")) for table in tables] == [
        (tables[0].count("50.0 ("), 1)
    ] * 2
    assert "50.0 (" in tables[0]


def test_the_rows_that_a_reference_names_are_shown_alone(tmp_path: Path) -> None:
    """A report of `BENCH#go` was refused, though its help says that # selects rows."""
    rankings = {"q1": ["q1-gold"], "q2": ["other"]}
    rows = {(sdk, mode): rankings for sdk in ("go", "py") for mode in ("bm25", "hybrid")}
    bench = write_bench(tmp_path / "bench.json", rows)
    with Overview.load([f"{bench}#go"], [], tmp_path) as overview:
        [report] = overview.benches
    assert [(row.system, row.strategy) for row in report.rows] == [("go", "bm25"), ("go", "hybrid")]
    assert [system.name for system in report.systems] == ["go"]
    with pytest.raises(UsageError, match="ts"):
        Overview.load([f"{bench}#ts"], [], tmp_path)


def test_a_chart_shows_what_each_system_finds_in_which_time() -> None:
    path = CHECKOUT / "results" / "published" / "systems" / "locomo-turn.json"
    bench = BenchReport.model_validate_json(path.read_bytes())
    chart = quality_and_cost(bench)
    assert chart is not None
    assert len(chart.rows) == len(bench.rows)
    [row] = [row for row in chart.rows if row[0] == "faiss"]
    [faiss] = [row for row in bench.rows if row.system == "faiss"]
    assert faiss.latency is not None
    assert row[1:3] == [
        f"{faiss.views['all'].metrics['recall_any@10'].value:.4g}",
        f"{faiss.latency.answer.p50:.4g}",
    ]
    untimed = [each.model_copy(update={"latency": None}) for each in bench.rows[1:]]
    assert quality_and_cost(bench.model_copy(update={"rows": [bench.rows[0], *untimed]})) is None
