"""A latency below what the daemon says it took is counted in the result, and shown."""

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from memconform.bench.records import QueryRecord, Relevance
from memconform.bench.rows import row
from memconform.client.timings import short_latencies
from memconform.replay.events import ReplayFinished
from memconform.reports import bench_notes, lme
from memconform.runs.events import RunFinished
from memconform.runs.schedule import execute
from tests.adversarial.inprocess import (
    QUESTIONS,
    FaultyRun,
    InProcessRunner,
    plan_of,
    write_dataset,
)
from tests.fakes.hostile import HostileDaemon
from tests.fakes.scripted import ScriptedBrain
from tests.unit.lme_results import question, result_of


class _TimedDaemon(HostileDaemon):
    """States that each search took this long."""

    def __init__(self, stated_ms: float) -> None:
        super().__init__(())
        self._stated_ms = stated_ms

    def _retrieve(self, brain: ScriptedBrain, query: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = super()._retrieve(brain, query, body)
        trace = answer["trace"] | {"searchMs": self._stated_ms}
        return answer | {"tookMs": self._stated_ms, "trace": trace}


class _TimedRunner(InProcessRunner):
    def __init__(self, stated_ms: float) -> None:
        super().__init__(())
        self._daemon = _TimedDaemon(stated_ms)


@pytest.mark.parametrize("scenario", ["search-retrieve-only", "ask-basic"])
@pytest.mark.parametrize(("stated_ms", "count"), [(1e9, QUESTIONS), (0.0, 0)])
async def test_a_run_counts_them_and_says_so(
    tmp_path: Path, scenario: str, stated_ms: float, count: int
) -> None:
    plan = plan_of(FaultyRun((), scenario, 1), write_dataset(tmp_path), tmp_path)
    events = [event async for event in execute(plan, _TimedRunner(stated_ms))]
    [finished] = [event for event in events if isinstance(event, RunFinished)]
    assert finished.summary.short_latencies == count
    assert (short_latencies(count) in finished.summary.reasons) == bool(count)


def _record(latency_ms: float, daemon_ms: float | None) -> QueryRecord:
    return QueryRecord(
        system="go", strategy="bm25", haystack="h", query=f"{latency_ms}", category="c",
        views={"all": Relevance(gold=["a"])}, ranking=["a"], latency_ms=latency_ms,
        search_ms=None, daemon_ms=daemon_ms,
    )  # fmt: skip


def test_a_bench_counts_them_by_row_and_says_so() -> None:
    records = [_record(1.9, 5.7), _record(6.0, 5.7), _record(2.0, None)]
    measured = row("go", "bm25", len(records), records, None, ks=[1])
    assert measured.short_latencies == 1
    assert bench_notes._latency_notes(Mock(rows=[measured])) == [f"go bm25: {short_latencies(1)}"]
    none = measured.model_copy(update={"short_latencies": 0})
    assert bench_notes._latency_notes(Mock(rows=[none])) == []


def test_a_replay_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = result_of([question("k-1")])
    for count in (0, 3):
        counted = result.model_copy(update={"short_latencies": count})
        lme.show_lme(ReplayFinished((counted,), None, tmp_path, 0), quiet=True)
        said = " ".join(capsys.readouterr().err.split())
        assert (short_latencies(count) in said) == bool(count)
