"""Where nothing was measured, no report has a rate or an interval; it says why instead."""

import ast
import asyncio
import io
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import memconform
from memconform.bench.raw_http import RawExchange, RawRequest
from memconform.records import Incident
from memconform.reports import console as console_report
from memconform.reports import difference, matrix
from memconform.reports.rates import NOT_MEASURED, banner, format_rate, pass_rate_text
from memconform.runs.events import RunFinished
from memconform.runs.results import LatencySummary, RunSummary
from memconform.runs.schedule import execute
from memconform.scoring.statuses import QuestionStatus
from memconform.stats.intervals import wilson
from tests.adversarial.inprocess import (
    QUESTIONS,
    FaultyRun,
    InProcessRunner,
    plan_of,
    write_dataset,
)

_NUMBER = re.compile(r"\d\.\d")
_MISSING = [status for status in QuestionStatus if status.expected and not status.measured]


class _SilentReader(InProcessRunner):
    """A daemon that finds everything and answers nothing."""

    async def _answer(self, request: RawRequest, exchange: RawExchange) -> None:
        if request.path.endswith("/ask"):
            await exchange.problem(500, "internal_error", "no reader")
        else:
            await super()._answer(request, exchange)


async def _unmeasured(folder: Path) -> RunSummary:
    plan = plan_of(FaultyRun((), "ask-basic", 1), write_dataset(folder), folder)
    async for event in execute(plan, _SilentReader(())):
        if isinstance(event, RunFinished):
            return event.summary
    raise AssertionError("the run ended without its result")


@pytest.fixture(scope="module")
def unmeasured(tmp_path_factory: pytest.TempPathFactory) -> RunSummary:
    """The summary of a run in which every question ended in a daemon error."""
    return asyncio.run(_unmeasured(tmp_path_factory.mktemp("unmeasured")))


def _rows(summary: RunSummary) -> str:
    return "\n".join(f"{name}: {value}" for name, value in console_report._rows(summary))


def _matrix(summary: RunSummary) -> str:
    stream = io.StringIO()
    Console(file=stream, width=300).print(matrix._table([summary, summary], 300)[0])
    return stream.getvalue()


def test_a_run_without_measurements_prints_no_rate(
    unmeasured: RunSummary, capsys: pytest.CaptureFixture[str]
) -> None:
    """Twenty daemon errors left 0.000 and an interval from 0.000 to 0.161."""
    assert unmeasured.counts[QuestionStatus.DAEMON_ERROR] == QUESTIONS
    assert (unmeasured.pass_rate, unmeasured.pass_rate_interval) == (None, (0.0, 1.0))
    why = f"{QUESTIONS} daemon_error"
    assert f"pass rate (95 %): not measured: {why}" in _rows(unmeasured)
    assert why in banner(unmeasured)
    assert "pass_rate=none mean_score=none" in banner(unmeasured)
    assert NOT_MEASURED in _matrix(unmeasured)
    difference.show_trend([unmeasured])
    trend = capsys.readouterr().out
    assert NOT_MEASURED in trend
    assert why in trend


def test_a_trend_keeps_scorers_apart(
    unmeasured: RunSummary, capsys: pytest.CaptureFixture[str]
) -> None:
    """10 of 100 by a judge and 18 of 100 by words looked like an improvement."""
    judged = unmeasured.model_copy(update={"scorer": "judge"})
    difference.show_trend([unmeasured, judged, judged])
    assert capsys.readouterr().out.replace("\n", " ").count("by judge") == 1


@given(
    counts=st.dictionaries(st.sampled_from(QuestionStatus), st.integers(0, 30)),
    ended=st.booleans(),
)
def test_every_report_has_a_rate_only_of_what_was_measured(
    unmeasured: RunSummary, counts: dict[QuestionStatus, int], *, ended: bool
) -> None:
    counts = {status: counts.get(status, 0) for status in QuestionStatus}
    passed = counts[QuestionStatus.CORRECT]
    measured = sum(counts[status] for status in QuestionStatus if status.measured)
    total = measured + sum(counts[status] for status in _MISSING)
    incident = Incident(code="daemon_died", message="", hint="", excerpt="", exit_code=3)
    void = ended or not measured
    summary = unmeasured.model_copy(
        update={
            "counts": counts,
            "total": total,
            "passed": passed,
            "pass_rate": None if void else passed / total,
            "mean_score": None if void else passed / measured,
            # As results of earlier versions have it.
            "pass_rate_interval": wilson(passed, total),
            "incident": incident if ended else None,
            "latency": LatencySummary(done=None, first_event=None, first_delta=None),
        }
    )
    [rate] = [line for line in _rows(summary).splitlines() if line.startswith("pass rate")]
    rate = rate.partition(": ")[2]
    [row, _] = [line for line in _matrix(summary).splitlines() if summary.sdk in line]
    for text in (rate, pass_rate_text(summary, brief=True)):
        assert bool(_NUMBER.search(text)) == (not void)
        assert (NOT_MEASURED in text) == (void or (text is rate and measured < total))
    assert (NOT_MEASURED in row) == void
    assert bool(re.search(r"=\d", banner(summary).partition("not_measured")[0])) == (not void)
    if void and not ended:
        for status in _MISSING:
            if counts[status]:
                assert f"{counts[status]} {status.value}" in rate
                assert f"{counts[status]} {status.value}" in banner(summary)
    if not void and measured < total:
        assert "(" not in rate, "bounds have no interval"


@given(st.floats(0, 1) | st.none(), st.tuples(st.floats(0, 1), st.floats(0, 1)) | st.none())
def test_a_rate_of_nothing_is_no_number(
    rate: float | None, interval: tuple[float, float] | None
) -> None:
    assert format_rate(rate, interval, measured=0) == NOT_MEASURED
    assert format_rate(None, interval, measured=3) == NOT_MEASURED
    if rate is not None:
        text = format_rate(rate, interval, measured=1)
        assert text.startswith(f"{rate:.3f}")
        assert ("(" in text) == (interval is not None)


_OTHER_INTERVALS = {
    ("reports/rates.py", "format_rate"),
    ("reports/rates.py", "format_bounds"),
    ("reports/rates.py", "latency_text"),  # a ratio of latencies that were measured
    ("reports/parity.py", "_verdict"),  # of verdicts that need compared questions
    ("reports/bench_notes.py", "bm25_table"),  # only where questions were compared
}


def _formats_interval(text: ast.JoinedStr) -> bool:
    """Whether an f-string has two numbers with a precision, joined by `to` or a dash."""
    parts = [
        "#" if isinstance(part, ast.FormattedValue) and part.format_spec is not None
        else part.value if isinstance(part, ast.Constant) else "?"
        for part in text.values
    ]  # fmt: skip
    return bool(re.search(r"#( to |-|, )#", "".join(map(str, parts))))


def test_no_other_function_formats_an_interval() -> None:
    functions = set()
    folder = Path(memconform.__file__).parent
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and any(
                isinstance(child, ast.JoinedStr) and _formats_interval(child)
                for child in ast.walk(node)
            ):
                functions.add((path.relative_to(folder).as_posix(), node.name))
    assert functions == _OTHER_INTERVALS
