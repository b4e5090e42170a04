"""Every conformance case fails where what it is about is broken, and passes where nothing is."""

import asyncio
import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from memconform.conformance.catalog import catalog
from memconform.conformance.mutation.mutant import Mutant
from memconform.conformance.mutation.mutants import check_mutants
from memconform.conformance.mutation.results import FalseAlarm, Fate, MutantResult
from memconform.conformance.mutation.score import MutantFinished, ScoringFinished, score
from memconform.daemons.discovery import find_runner

CHECKOUT = Path(__file__).parents[3]

pytestmark = [
    # Of requests that a case gives up while they connect httpcore leaves transports open; seen of
    # twenty at once, on a busy machine. They are collected where they were made, and not in
    # another test.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

_QUICK = 40
"""Of so many mutants one is for every test run; so is the first that breaks a thing in some way."""


def _params(mutants: Sequence[Mutant]) -> list[Any]:
    ways: set[frozenset[str]] = set()
    params = []
    for number, mutant in enumerate(mutants):
        way = frozenset(mutant.mutation.model_fields_set - {"when"})
        quick = number % _QUICK == 0 or way not in ways
        ways.add(way)
        marks = [] if quick else [pytest.mark.exhaustive]
        params.append(pytest.param(mutant, id=mutant.id, marks=marks))
    return params


@dataclass(frozen=True)
class _Outcome:
    mutants: dict[str, MutantResult] = field(default_factory=dict)
    alarms: list[FalseAlarm] = field(default_factory=list)


def _asked_for(request: pytest.FixtureRequest, test: Callable[..., None]) -> list[Mutant]:
    """The mutants of a test that were not left out by -m, -k or name."""
    return [
        mutant
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.originalname == test.__name__
        if isinstance(mutant := item.callspec.params["mutant"], Mutant)
    ]


@pytest.fixture(scope="module")
def outcome(
    cache: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> _Outcome:
    """The mutants that are asked for, each put to its case by what `mutate` puts them with."""
    del cache
    mutants = _asked_for(request, test_a_broken_daemon_fails)
    outcome = _Outcome()

    async def run() -> None:
        folder = tmp_path_factory.mktemp("broken")
        events = score(
            lambda: find_runner("py", CHECKOUT), mutants, catalog(), folder=folder, daemons=8
        )
        async for event in events:
            match event:
                case MutantFinished(result=result):
                    outcome.mutants[result.id] = result
                case ScoringFinished(alarms=alarms):
                    outcome.alarms.extend(alarms)

    try:
        asyncio.run(run())
    finally:
        gc.collect()
    return outcome


def test_every_case_has_a_mutant() -> None:
    found = {mutant.finder.base for mutant in check_mutants() if mutant.finder}
    assert {entry.base for entry in catalog()} == found


@pytest.mark.parametrize("mutant", _params(check_mutants()))
def test_a_broken_daemon_fails(mutant: Mutant, outcome: _Outcome) -> None:
    result = outcome.mutants[mutant.id]
    assert result.fate is Fate.KILLED, result
    assert result.by == mutant.check
    assert result.got


def test_a_good_daemon_passes_behind_the_same_proxy(outcome: _Outcome) -> None:
    assert outcome.mutants
    assert outcome.alarms == []
