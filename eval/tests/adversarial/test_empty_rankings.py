"""A daemon that answers probes and finds nothing for any question is suspicious, not convicted."""

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from memconform.ingest.records import nothing_found
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


class _Forgetful(HostileDaemon):
    """Finds nothing for a question, or for all of them but one."""

    def __init__(self, found: str) -> None:
        super().__init__(())
        self._found = found

    def _retrieve(self, brain: ScriptedBrain, query: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = super()._retrieve(brain, query, body)
        is_asked = query.endswith("?") and self._found not in query
        return answer | {"chunks": []} if is_asked else answer


class _Runner(InProcessRunner):
    def __init__(self, found: str) -> None:
        super().__init__(())
        self._daemon = _Forgetful(found)


@pytest.mark.parametrize(("found", "empty"), [("nothing", QUESTIONS), ("box3?", QUESTIONS - 1)])
async def test_a_run_without_any_retrieval_says_so(tmp_path: Path, found: str, empty: int) -> None:
    plan = plan_of(FaultyRun((), "search-retrieve-only", 1), write_dataset(tmp_path), tmp_path)
    events = [event async for event in execute(plan, _Runner(found))]
    [finished] = [event for event in events if isinstance(event, RunFinished)]
    assert finished.summary.empty_rankings == empty
    is_suspicious = nothing_found(QUESTIONS) in finished.summary.reasons
    assert is_suspicious == (empty == QUESTIONS)
    # It was measured: a suspicion is no incident.
    assert finished.summary.pass_rate == (QUESTIONS - empty) / QUESTIONS


@pytest.mark.parametrize(("empty", "shown"), [(5, True), (4, False)])
def test_a_row_of_a_bench_without_any_retrieval_says_so(empty: int, *, shown: bool) -> None:
    row = Mock(
        system="go", strategy="bm25", queries=5, empty_rankings=empty, rising_scores=0,
        short_rankings=0, skipped_stages={}, null_lists=0, unanswered=0,
    )  # fmt: skip
    lines = list(bench_notes._row_notes(row, is_foreign=False))
    assert lines == ([f"go bm25: {nothing_found(5)}"] if shown else [])


def test_a_replay_without_any_retrieval_says_so() -> None:
    result = result_of([question("k-1"), question("k-2")])
    for empty in (0, 1, 2):
        notes = lme.ranking_notes([result.model_copy(update={"empty_rankings": empty})])
        assert (f"go: {nothing_found(2)}" in list(notes)) == (empty == 2)
