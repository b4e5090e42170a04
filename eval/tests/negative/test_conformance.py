"""Every conformance case fails where what it is about is broken, and passes where nothing is."""

import asyncio
import gc
import json
import secrets
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from memconform.conformance import strict_yaml
from memconform.conformance.catalog import Entry, catalog
from memconform.conformance.fixture import Fixture
from memconform.conformance.mutation.mutants import mutants as table
from memconform.conformance.results import CaseResult, Result
from memconform.conformance.running import run_case
from memconform.conformance.suite import Job, brain_id, jobs
from memconform.daemons.manifest import load_manifest
from memconform.daemons.manifest_runner import ManifestRunner
from memconform.fakes.mutant import MutantRunner
from memconform.fakes.mutation import Mutation

CHECKOUT = Path(__file__).parents[3]

pytestmark = [
    # Of requests that a case gives up while they connect httpcore leaves transports open; seen of
    # twenty at once, on a busy machine. They are collected where they were made, and not in
    # another test.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

_TOGETHER = 24
"""Cases that one daemon serves, one after another."""


@dataclass(frozen=True)
class Mutant:
    entry: Entry
    slot: str
    mutation: Mutation


def _mutants() -> list[Mutant]:
    by_id = {entry.id: entry for entry in catalog()}
    first = {entry.base: entry for entry in reversed(catalog())}
    known = {mutant.id: mutant.mutation for mutant in table()}
    mutants = []
    for raw in strict_yaml.load(Path(__file__).with_name("mutants.yaml")):
        named = raw.pop("case")
        slot = raw.pop("slot")
        entry = by_id.get(named) or first[named]
        assert slot in entry.slots(), f"{named} has no slot {slot}"
        borrowed = raw.pop("mutant", None)
        mutation = Mutation.model_validate(raw) if borrowed is None else known[borrowed]
        mutants.append(Mutant(entry, slot, mutation))
    return mutants


MUTANTS = _mutants()

_QUICK = 12
"""Of so many mutants one is for every test run; so is the first that breaks a thing in some way."""


def _params(mutants: list[Mutant]) -> list[Any]:
    ways: set[frozenset[str]] = set()
    params = []
    for number, mutant in enumerate(mutants):
        way = frozenset(mutant.mutation.model_fields_set - {"when"})
        quick = number % _QUICK == 0 or way not in ways
        ways.add(way)
        marks = [] if quick else [pytest.mark.exhaustive]
        params.append(pytest.param(mutant, id=mutant.entry.id, marks=marks))
    return params


def _asked_for(request: pytest.FixtureRequest, test: Callable[..., None]) -> list[Mutant]:
    """The mutants of a test that were not left out by -m, -k or name."""
    return [
        mutant
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.originalname == test.__name__
        if isinstance(mutant := item.callspec.params["mutant"], Mutant)
    ]


def _runner(mutation: Mutation) -> MutantRunner:
    """The Python daemon, broken in its source, or else by a proxy that may become another one."""
    folder = CHECKOUT / "sdks" / "py"
    good = ManifestRunner(load_manifest(folder / "sdk.toml"), folder)
    return MutantRunner(good, mutation if mutation.source else Mutation())


async def _run(job: Job, folder: Path, mutations: dict[str, Mutation]) -> dict[str, CaseResult]:
    """The results of a job's cases, each with its mutation."""
    results = {}
    runner = _runner(mutations.get(job.entries[0].id, Mutation()))
    run_id = f"{folder.name}-{secrets.token_hex(4)}"
    async with Fixture(runner, job.serving, folder, run_id) as fixture:
        await fixture.prepare()
        for entry in job.entries:
            mutation = mutations.get(entry.id, Mutation())
            at_start = not (mutation.is_of_exchanges or mutation.source)
            runner.become(mutation, folder)
            if at_start:
                await fixture.stop()
            await fixture.restore()
            results[entry.id] = (await run_case(entry, fixture, brain_id(entry))).result
            runner.become(Mutation(), folder)
            if at_start:
                await fixture.stop()
    return results


def _parts(job: Job, mutations: dict[str, Mutation]) -> Iterator[Job]:
    """A broken daemon is waited for: side by side that takes a fraction of the time.

    One that is broken in its source serves nobody else.
    """
    own = [entry for entry in job.entries if mutations.get(entry.id, Mutation()).source]
    shared = [entry for entry in job.entries if entry not in own]
    for entry in own:
        yield Job(job.serving, (entry,))
    for start in range(0, len(shared), _TOGETHER):
        yield Job(job.serving, tuple(shared[start : start + _TOGETHER]))


def _all(
    entries: Iterable[Entry], folder: Path, mutations: dict[str, Mutation]
) -> dict[str, CaseResult]:
    async def run() -> dict[str, CaseResult]:
        slots = asyncio.Semaphore(8)

        async def one(number: int, job: Job) -> dict[str, CaseResult]:
            home = folder / f"job-{number}"
            home.mkdir()
            async with slots:
                return await _run(job, home, mutations)

        small = [part for job in jobs(list(entries)) for part in _parts(job, mutations)]
        found = await asyncio.gather(*(one(n, job) for n, job in enumerate(small)))
        return {case: result for results in found for case, result in results.items()}

    try:
        return asyncio.run(run())
    finally:
        gc.collect()


@pytest.fixture(scope="module")
def broken(
    cache: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> dict[str, CaseResult]:
    """Cases, each on a daemon that breaks what it is about."""
    del cache
    mutants = _asked_for(request, test_a_broken_daemon_fails)
    mutations = {mutant.entry.id: mutant.mutation for mutant in mutants}
    return _all((m.entry for m in mutants), tmp_path_factory.mktemp("broken"), mutations)


UNBROKEN = MUTANTS[::4]
"""Some of each kind: that the daemon itself is right is what test_conform sees."""


@pytest.fixture(scope="module")
def whole(
    cache: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> dict[str, CaseResult]:
    """Cases through the same proxy, with nothing broken."""
    del cache
    mutants = _asked_for(request, test_a_good_daemon_passes_behind_the_same_proxy)
    return _all((m.entry for m in mutants), tmp_path_factory.mktemp("whole"), {})


def test_every_case_has_a_mutant() -> None:
    assert {entry.base for entry in catalog()} == {mutant.entry.base for mutant in MUTANTS}


@pytest.mark.parametrize("mutant", _params(MUTANTS))
def test_a_broken_daemon_fails(mutant: Mutant, broken: dict[str, CaseResult]) -> None:
    case = broken[mutant.entry.id]
    [check] = [c for c in case.checks if c.id == f"{mutant.entry.id}#{mutant.slot}"]
    red = Result.FAIL if mutant.entry.case.level == "must" else Result.WARN
    assert check.result is red, _told(case)
    assert check.got


@pytest.mark.parametrize("mutant", _params(UNBROKEN))
def test_a_good_daemon_passes_behind_the_same_proxy(
    mutant: Mutant, whole: dict[str, CaseResult]
) -> None:
    case = whole[mutant.entry.id]
    assert {check.result for check in case.checks} == {Result.PASS}, _told(case)


def _told(case: CaseResult) -> str:
    told: dict[str, Any] = defaultdict(list)
    for check in case.checks:
        told[check.id.partition("#")[2]] = [check.result.value, *check.got[:2]]
    return json.dumps(told, indent=1)
