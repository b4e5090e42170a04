"""Attempts at one question that overlap: --repeat with --concurrency."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from memconform.runs.journal import read_attempts
from tests.adversarial.inprocess import (
    QUESTIONS,
    TRUTH,
    FaultyRun,
    false_scores,
    plan_of,
    run_plan,
    write_dataset,
)
from tests.fakes.hostile import Fault

_REPEAT, _CONCURRENCY = 3, 8


@pytest.mark.parametrize("scenario", ["ask-basic", "search-retrieve-only"])
async def test_every_attempt_has_its_number(tmp_path: Path, scenario: str) -> None:
    """A number that is taken before the call belongs to whichever attempt ends first."""
    faulty_run = FaultyRun((), scenario, _CONCURRENCY)
    plan = plan_of(faulty_run, write_dataset(tmp_path), tmp_path)
    plan = replace(plan, settings=plan.settings.model_copy(update={"repeat": _REPEAT}))
    result = await run_plan(plan)
    assert {each.id: each.verdict.value for each in result.questions} == TRUTH
    [journal] = plan.output.glob("runs/*/journal.jsonl")
    attempts = list(read_attempts(journal))
    numbers = Counter(each.row for each in attempts)
    assert numbers == dict.fromkeys(range(QUESTIONS), _REPEAT)
    assert {each.attempt for each in attempts} == set(range(_REPEAT))
    assert len({(each.row, each.attempt) for each in attempts}) == QUESTIONS * _REPEAT


@pytest.mark.parametrize("kind", ["index_lost", "first_dropped", "texts_cut"])
async def test_overlapping_attempts_of_a_faulty_daemon_give_no_false_score(
    tmp_path: Path, kind: str
) -> None:
    faults = (Fault(kind, at=90, lasts=7, questions=True),)
    plan = plan_of(FaultyRun(faults, "ask-basic", _CONCURRENCY), write_dataset(tmp_path), tmp_path)
    plan = replace(plan, settings=plan.settings.model_copy(update={"repeat": _REPEAT}))
    result = await run_plan(plan, faults)
    assert not false_scores(result)
    [journal] = plan.output.glob("runs/*/journal.jsonl")
    attempts = [(each.row, each.attempt) for each in read_attempts(journal)]
    assert len(set(attempts)) == len(attempts)
