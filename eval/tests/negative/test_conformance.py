"""Every conformance case fails where what it is about is broken, and passes where nothing is."""

import asyncio
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from memconform.conformance import strict_yaml
from memconform.conformance.catalog import Entry, catalog
from memconform.conformance.fixture import Fixture
from memconform.conformance.results import CaseResult, Result
from memconform.conformance.running import run_case
from memconform.conformance.suite import Job, brain_id, jobs
from memconform.daemons.manifest import load_manifest
from memconform.daemons.manifest_runner import ManifestRunner
from memconform.fakes.mutation import Mutation

CHECKOUT = Path(__file__).parents[3]

_TOGETHER = 24
"""Cases that one daemon serves, one after another."""

_PROXY = (
    "{python}", "-m", "memconform.fakes.proxy", "--addr", "{addr}", "--root", "{state_dir}",
    "--mutation", "{state_dir}/../mutation.json", "--",
)  # fmt: skip

_OF_THE_PROCESS = (
    "ignore_term", "everywhere", "child_env", "child_arguments", "before_start", "announcement",
)  # fmt: skip
"""What a proxy does at its start: it must be started with the mutation."""


@dataclass(frozen=True)
class Mutant:
    entry: Entry
    slot: str
    mutation: Mutation


def _mutants() -> list[Mutant]:
    by_id = {entry.id: entry for entry in catalog()}
    first = {entry.base: entry for entry in reversed(catalog())}
    mutants = []
    for raw in strict_yaml.load(Path(__file__).with_name("mutants.yaml")):
        named = raw.pop("case")
        slot = raw.pop("slot")
        entry = by_id.get(named) or first[named]
        assert slot in entry.slots(), f"{named} has no slot {slot}"
        mutants.append(Mutant(entry, slot, Mutation.model_validate(raw)))
    return mutants


MUTANTS = _mutants()


def _proxied() -> ManifestRunner:
    """The Python daemon behind a proxy that reads its mutation from a file beside the state."""
    folder = CHECKOUT / "sdks" / "py"
    manifest = load_manifest(folder / "sdk.toml")
    argv = [part.replace("{addr}", "127.0.0.1:0") for part in manifest.serve.argv]
    serve = manifest.serve.model_copy(update={"argv": [*_PROXY, *argv]})
    return ManifestRunner(manifest.model_copy(update={"serve": serve}), folder)


async def _run(job: Job, folder: Path, mutations: dict[str, Mutation]) -> dict[str, CaseResult]:
    """The results of a job's cases, each with its mutation."""
    results = {}
    async with Fixture(_proxied(), job.serving, folder, folder.name) as fixture:
        await fixture.prepare()
        for entry in job.entries:
            mutation = mutations.get(entry.id, Mutation())
            at_start = bool(mutation.model_fields_set.intersection(_OF_THE_PROCESS))
            (folder / "mutation.json").write_text(
                mutation.model_dump_json(by_alias=True, exclude_unset=True)
            )
            if at_start:
                await fixture.stop()
            await fixture.restore()
            results[entry.id] = (await run_case(entry, fixture, brain_id(entry))).result
            (folder / "mutation.json").unlink()
            if at_start:
                await fixture.stop()
    return results


def _parts(job: Job) -> Iterator[Job]:
    """A broken daemon is waited for: side by side that takes a fraction of the time."""
    for start in range(0, len(job.entries), _TOGETHER):
        yield Job(job.serving, job.entries[start : start + _TOGETHER])


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

        small = [part for job in jobs(list(entries)) for part in _parts(job)]
        found = await asyncio.gather(*(one(n, job) for n, job in enumerate(small)))
        return {case: result for results in found for case, result in results.items()}

    return asyncio.run(run())


@pytest.fixture(scope="module")
def broken(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, CaseResult]:
    """All cases, each on a daemon that breaks what it is about."""
    del cache
    folder = tmp_path_factory.mktemp("broken")
    mutations = {mutant.entry.id: mutant.mutation for mutant in MUTANTS}
    return _all((mutant.entry for mutant in MUTANTS), folder, mutations)


UNBROKEN = MUTANTS[::4]
"""Some of each kind: that the daemon itself is right is what test_conform sees."""


@pytest.fixture(scope="module")
def whole(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, CaseResult]:
    """Cases through the same proxy, with nothing broken."""
    del cache
    return _all((m.entry for m in UNBROKEN), tmp_path_factory.mktemp("whole"), {})


def test_every_case_has_a_mutant() -> None:
    assert {entry.base for entry in catalog()} == {mutant.entry.base for mutant in MUTANTS}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.entry.id)
def test_a_broken_daemon_fails(mutant: Mutant, broken: dict[str, CaseResult]) -> None:
    case = broken[mutant.entry.id]
    [check] = [c for c in case.checks if c.id == f"{mutant.entry.id}#{mutant.slot}"]
    red = Result.FAIL if mutant.entry.case.level == "must" else Result.WARN
    assert check.result is red, _told(case)
    assert check.got


@pytest.mark.parametrize("mutant", UNBROKEN, ids=lambda mutant: mutant.entry.id)
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
