"""Results in the formats of other programs; no text of a daemon becomes a command or markup."""

import csv
import io
import json
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import xmlschema

from memconform.reports.check_status import OutcomeStatus
from memconform.reports.exports.annotations import MOST, annotation_lines
from memconform.reports.exports.badge import badge
from memconform.reports.exports.csv_rows import HEADER, write_csv
from memconform.reports.exports.ctrf import CtrfReport, ctrf_report, write_ctrf
from memconform.reports.exports.summary import summary_markdown
from memconform.reports.junit import write_outcomes
from memconform.reports.overview.headline import Grade, Statement, statements
from memconform.reports.overview.outcomes import Outcome, outcomes
from memconform.reports.overview.overview import Overview
from memconform.scoring.statuses import QuestionStatus
from memconform.storage.sink import Sink
from tests.run_results import question, write_run
from tests.unit.bench_results import write_bench

_XSD = Path(__file__).parents[2] / "contract" / "junit.xsd"
_MOMENT = datetime(2026, 1, 31, tzinfo=UTC)

HOSTILE = (
    "<script>alert(1)</script>",
    "]]></failure>",
    "::error::owned",
    "\n::error::owned",
    "##vso[task.setvariable]x",
    "\x1b]8;;http://evil.example\x07click\x1b]8;;\x07",
    "\x1b]52;c;AAAA\x07",
    "\u202egnp.exe",
    "a\x00b\x0bc\ufffe",
    "=cmd|' /C calc'!A0",
    "| a | b |\n| --- |",
    "[x](javascript:alert(1))",
    "%0A::error::owned",
)


def _outcome(status: OutcomeStatus = OutcomeStatus.FAILED, text: str = "no") -> Outcome:
    return Outcome(
        sdk=text, suite=text, id=text, title=text, message=text, status=status,
        detail=status.value, trace=text, ms=1.5, tags=("t",),
    )  # fmt: skip


_ALL = [_outcome(status, name) for status, name in zip(OutcomeStatus, "abcd", strict=True)]


def _bytes() -> tuple[list[bytes], Sink]:
    pieces: list[bytes] = []
    return pieces, Sink(pieces.append)


def junit_of(found: list[Outcome]) -> ET.Element:
    pieces, sink = _bytes()
    write_outcomes(sink, found, _MOMENT)
    text = b"".join(pieces)
    xmlschema.XMLSchema(_XSD).validate(io.BytesIO(text))
    return ET.fromstring(text)  # noqa: S314 - written by us


def test_junit_tells_failures_errors_and_skips_apart() -> None:
    root = junit_of(_ALL)
    kinds = [[child.tag for child in case] for case in root.iter("testcase")]
    assert kinds == [[], ["failure"], ["error"], ["skipped"]]
    for suite, failures, errors, skipped in zip(root, "0100", "0010", "0001", strict=True):
        counts = [suite.get(name) for name in ("tests", "failures", "errors", "skipped")]
        assert counts == ["1", failures, errors, skipped]


@pytest.mark.parametrize("text", HOSTILE)
def test_junit_is_valid_whatever_a_daemon_says(text: str) -> None:
    [case] = junit_of([_outcome(text=text)]).iter("testcase")
    assert case.get("name")
    failure = case.find("failure")
    assert failure is not None
    assert "\x1b" not in (failure.text or "")
    for line in (failure.text or "").splitlines():
        assert not line.startswith("::")


def test_what_was_not_measured_is_other_in_ctrf_and_never_failed() -> None:
    report = ctrf_report(_ALL, _MOMENT, _MOMENT)
    assert [test.status for test in report.results.tests] == [
        "passed", "failed", "other", "skipped",
    ]  # fmt: skip
    summary = report.results.summary
    assert (summary.tests, summary.passed, summary.failed, summary.other) == (4, 1, 1, 1)
    pieces, sink = _bytes()
    write_ctrf(sink, report)
    written = json.loads(b"".join(pieces))
    assert written["reportFormat"] == "CTRF"
    assert CtrfReport.model_validate(written) == report


@pytest.mark.parametrize("text", HOSTILE)
def test_ctrf_keeps_texts_unchanged(text: str) -> None:
    pieces, sink = _bytes()
    write_ctrf(sink, ctrf_report([_outcome(text=text)], _MOMENT, _MOMENT))
    [test] = json.loads(b"".join(pieces))["results"]["tests"]
    assert test["message"] == text


def test_csv_has_a_row_for_each_outcome() -> None:
    pieces, sink = _bytes()
    write_csv(sink, _ALL)
    rows = list(csv.reader(io.StringIO(b"".join(pieces).decode())))
    assert tuple(rows[0]) == HEADER
    assert [row[4] for row in rows[1:]] == ["passed", "failed", "error", "skipped"]
    assert rows[1][7:] == ["1.500", "t", "", "", "", ""]


@pytest.mark.parametrize("text", ["=1+1", "+1+1", "-1-1", "@SUM(A1)", "\t=1", " =1"])
def test_no_cell_of_a_csv_is_a_formula(text: str) -> None:
    pieces, sink = _bytes()
    write_csv(sink, [_outcome(text=text)])
    row = list(csv.reader(io.StringIO(b"".join(pieces).decode(), newline="")))[1]
    assert row[2] == f"'{text}"


_BAD = [Statement(Grade.BAD, "py fails")]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_becomes_an_annotation_of_its_own(text: str) -> None:
    lines = list(annotation_lines([Statement(Grade.BAD, text)], [_outcome(text=text)], (), ()))
    assert len(lines) == 2
    for line in lines:
        head, _, data = line.removeprefix("::").partition("::")
        assert head.startswith("error title=")
        assert "::" not in head
        assert not any(character in data for character in "\n\r\x1b\x00")
        assert "%0A::" not in data


def test_a_wrong_answer_above_the_floor_is_no_error() -> None:
    wrong = _outcome()
    assert len(list(annotation_lines(_BAD, [wrong], {(wrong.sdk, wrong.suite)}, ()))) == 1
    assert len(list(annotation_lines(_BAD, [wrong], (), ()))) == 2


def test_what_was_not_measured_is_a_warning() -> None:
    lines = list(annotation_lines(_BAD, [_outcome(OutcomeStatus.ERROR)], (), ()))
    assert lines[1].startswith("::warning ")


def test_annotations_beyond_what_github_shows_are_counted() -> None:
    lines = list(annotation_lines(_BAD, [_outcome()] * 40, (), ()))
    assert len(lines) == MOST
    assert lines[-1] == "::error title=memconform::32 more errors"


@pytest.mark.parametrize("grade", list(Grade))
def test_a_badge_is_red_only_for_a_failure(grade: Grade) -> None:
    made = badge(Statement(grade, "x" * 100), "memory")
    assert made.is_error is (grade is Grade.BAD)
    assert (made.color == "red") is (grade is Grade.BAD)
    assert (made.color == "brightgreen") is (grade is Grade.GOOD)
    assert len(made.message) == 60


def _overview(tmp_path: Path) -> tuple[Overview, list[Statement], list[Outcome]]:
    rows = [
        question("right"),
        question("wrong|<b>", QuestionStatus.INCORRECT, reason="::error::no"),
        question("lost", QuestionStatus.TIMEOUT),
        question("off", QuestionStatus.NOT_APPLICABLE),
    ]
    path = write_run(tmp_path / "go.json", "go", rows)
    with Overview.load([str(path)], [], tmp_path) as overview:
        found = outcomes(overview)
        return overview, statements(overview), found


def test_questions_become_outcomes_by_their_status(tmp_path: Path) -> None:
    _, _, found = _overview(tmp_path)
    assert [(o.id, o.status.value, o.detail) for o in found] == [
        ("right", "passed", "correct"),
        ("wrong|<b>", "failed", "incorrect"),
        ("lost", "error", "timeout"),
        ("off", "skipped", "not_applicable"),
    ]
    assert found[2].message == "timeout: no event in 30 s"
    assert "curl" in found[2].trace


def test_markdown_has_the_verdict_the_matrix_and_both_lists(tmp_path: Path) -> None:
    text = summary_markdown(*_overview(tmp_path))
    assert text.startswith("## ❔ go was not measured on 1 question")
    assert "| birds, ask-basic, bm25 | 0.333 to 0.667" in text
    assert "### Failed: 1 test" in text
    assert "### Not measured: 1 test" in text
    assert "wrong\\|\\<b\\>" in text
    assert not any(line.startswith("::") for line in text.splitlines())


def _bench(tmp_path: Path, *strategies: str) -> tuple[Overview, list[Statement], list[Outcome]]:
    """Of three queries, a first row has the gold of one at rank 1, and a second one of two."""
    rankings = [
        {f"q{query}": [f"q{query}-gold" if query <= number else "x"] for query in range(3)}
        for number in range(len(strategies))
    ]
    rows = {("go", strategy): r for strategy, r in zip(strategies, rankings, strict=True)}
    path = write_bench(tmp_path / "result.json", rows)
    with Overview.load([str(path)], [], tmp_path) as overview:
        return overview, statements(overview), outcomes(overview)


def test_csv_has_a_row_for_each_figure_of_a_bench(tmp_path: Path) -> None:
    _, _, found = _bench(tmp_path, "bm25")
    pieces, sink = _bytes()
    write_csv(sink, found)
    rows = list(csv.DictReader(io.StringIO(b"".join(pieces).decode())))
    figures = {row["figure"]: row for row in rows}
    assert {row["id"] for row in rows} == {"bm25"}
    rate = figures["recall_any@2"]
    values = [float(rate[name]) for name in ("low", "value", "high")]
    assert values == sorted(values)
    assert values[1] == pytest.approx(100 / 3)
    assert (figures["p50 ms"]["value"], figures["p50 ms"]["low"]) == ("2.0", "")


def test_junit_and_ctrf_have_the_figures_of_a_bench(tmp_path: Path) -> None:
    _, _, found = _bench(tmp_path, "bm25")
    [suite] = junit_of(found)
    output = suite.findtext("system-out") or ""
    assert "bm25: recall_any@2 33.3 (" in output
    assert "bm25: p95 ms 2.0" in output
    [test] = ctrf_report(found, _MOMENT, _MOMENT).results.tests
    assert "recall_any@2 33.3 (" in (test.message or "")


def test_markdown_has_the_tables_of_a_bench(tmp_path: Path) -> None:
    text = summary_markdown(*_bench(tmp_path, "bm25", "vector"))
    assert "| system | strategy | recall_any@1 | recall_any@2 |" in text
    assert "| go | vector | 66.7 (" in text
    assert "| system | strategy | p50 ms |" in text


def test_a_badge_has_the_primary_figure_of_a_bench(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    _, [verdict], _ = _bench(tmp_path / "one", "bm25")
    assert badge(verdict, "memory").message.startswith("recall_any@2 33.3 % (")
    assert "recall_any@2 33.3 % (" in verdict.sentence()
    _, [verdict], _ = _bench(tmp_path, "bm25", "vector")
    message = badge(verdict, "memory").message
    assert message == "recall_any@2 33.3 % (go bm25) to 66.7 % (go vector)"


def test_rows_with_one_rate_have_no_range(tmp_path: Path) -> None:
    """A badge said `100.0 % (go bm25) to 100.0 % (go bm25)`."""
    path = write_bench(tmp_path / "b.json", {(sdk, "bm25"): {"q": ["q-gold"]} for sdk in "ab"})
    with Overview.load([str(path)], [], tmp_path) as overview:
        [verdict] = statements(overview)
    assert verdict.figure.endswith(" 100.0 % in 2 rows")


def test_a_bench_that_was_not_measured_has_no_figure(tmp_path: Path) -> None:
    path = write_bench(tmp_path / "result.json", {("go", "bm25"): {"q1": ["q1-gold"], "q2": None}})
    with Overview.load([str(path)], [], tmp_path) as overview:
        [verdict] = statements(overview)
        [outcome] = outcomes(overview)
    assert "not measured" in badge(verdict, "memory").message
    assert (outcome.status, outcome.figures) == (OutcomeStatus.ERROR, ())
