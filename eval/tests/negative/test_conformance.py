"""Every case fails on a daemon that breaks what it checks, and passes on the unmodified one."""

import asyncio
import gc
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from memconform.conformance.catalog import catalog
from memconform.conformance.mutation.mutant import Mutant
from memconform.conformance.mutation.mutant_table import check_mutants
from memconform.conformance.mutation.results import FalseAlarm, Fate, MutantResult
from memconform.conformance.mutation.score import MutantFinished, ScoringFinished, score
from memconform.daemons.discovery import find_runner

CHECKOUT = Path(__file__).parents[3]

pytestmark = [
    # httpcore leaves transports open if a request is cancelled while it connects; observed for
    # twenty at once, on a busy machine. They are collected here, and not in another test.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

_QUICK = 40
"""Every test run takes one mutant in this many, and the first of each kind of mutation."""
_EXHAUSTIVE = 8
"""CI takes one in this many, and the night the others: all of them take 265 s of CPU."""


def _params(mutants: Sequence[Mutant]) -> list[Any]:
    ways: set[frozenset[str]] = set()
    params = []
    for number, mutant in enumerate(mutants):
        way = frozenset(mutant.mutation.model_fields_set - {"when"})
        quick = number % _QUICK == 0 or way not in ways
        ways.add(way)
        rest = pytest.mark.slow if number % _EXHAUSTIVE else pytest.mark.exhaustive
        marks = [] if quick else [rest]
        params.append(pytest.param(mutant, id=mutant.id, marks=marks))
    return params


@dataclass(frozen=True)
class _Results:
    mutants: dict[str, MutantResult] = field(default_factory=dict)
    alarms: list[FalseAlarm] = field(default_factory=list)


def _selected_mutants(request: pytest.FixtureRequest, test: Callable[..., None]) -> list[Mutant]:
    """Return the mutants of a test that were selected by -m, -k or name."""
    return [
        mutant
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.originalname == test.__name__
        if isinstance(mutant := item.callspec.params["mutant"], Mutant)
    ]


@pytest.fixture(scope="module")
def results(
    cache: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> _Results:
    """Run each selected mutant against its case, with the scoring of `mutate`."""
    del cache
    mutants = _selected_mutants(request, test_a_broken_daemon_fails)
    results = _Results()

    # Mutants of the source exist for py; go starts and answers the others in half the time.
    of_source = [mutant for mutant in mutants if mutant.mutation.source]
    of_exchanges = [mutant for mutant in mutants if not mutant.mutation.source]
    fast = "go" if shutil.which("go") else "py"

    async def run() -> None:
        for sdk, selected in (("py", of_source), (fast, of_exchanges)):
            folder = tmp_path_factory.mktemp("broken")
            runner = partial(find_runner, sdk, CHECKOUT)
            async for event in score(runner, selected, catalog(), folder=folder, daemons=8):
                match event:
                    case MutantFinished(result=result):
                        results.mutants[result.id] = result
                    case ScoringFinished(alarms=alarms):
                        results.alarms.extend(alarms)

    try:
        asyncio.run(run())
    finally:
        gc.collect()
    return results


def test_every_case_has_a_mutant() -> None:
    bases = {mutant.finder.base for mutant in check_mutants() if mutant.finder}
    # Cases of readers and embedders that an SDK does not claim: test_unclaimed_readers breaks them.
    claimed = [
        entry
        for entry in catalog()
        if entry.case.unclaimed_reader is None and entry.case.unclaimed_embedder is None
    ]
    assert {entry.base for entry in claimed} == bases


@pytest.mark.parametrize("mutant", _params(check_mutants()))
def test_a_broken_daemon_fails(mutant: Mutant, results: _Results) -> None:
    result = results.mutants[mutant.id]
    assert result.fate is Fate.KILLED, result
    assert result.by == mutant.check
    assert result.got


def test_a_good_daemon_passes_behind_the_same_proxy(results: _Results) -> None:
    assert results.mutants
    assert results.alarms == []
