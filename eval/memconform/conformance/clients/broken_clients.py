"""Broken clients as data: the Python client with one thing broken, and which cases detect it."""

import asyncio
import shutil
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from functools import cache, partial
from pathlib import Path

from memconform.conformance.clients.catalog import ClientVariant
from memconform.conformance.clients.driver import Driver, Hello, running_driver
from memconform.conformance.clients.suite import conform_client
from memconform.conformance.mutation.mutant import Mutant
from memconform.conformance.mutation.mutant_table import mutants_of_table
from memconform.conformance.mutation.results import FalseAlarm, Fate, MutantResult
from memconform.conformance.mutation.score import (
    BaselineCaseFinished,
    Event,
    MutantFinished,
    ScoringFinished,
    ScoringStarted,
)
from memconform.conformance.results import CaseResult, Check, Result, SdkResult
from memconform.conformance.suite import CaseFinished, SdkFinished
from memconform.daemons.client_program import ClientProgram
from memconform.errors import UsageError

TABLE = Path(__file__).with_name("broken")
_PASSING = (Result.PASS, Result.NOT_APPLICABLE)
_IGNORED = shutil.ignore_patterns("__pycache__")


@cache
def broken_clients() -> tuple[Mutant, ...]:
    """Return the broken clients of the table; raises UsageError `mutant_invalid`."""
    return mutants_of_table(TABLE)


def patch_client(source: Path, mutant: Mutant, target: Path) -> None:
    """Copy the client of an SDK, its folder `client`, to the new folder `target`, and break it.

    Raises:
        UsageError: `mutant_invalid` if the text that is to be replaced does not occur once.
    """
    shutil.copytree(source / "client", target / "client", ignore=_IGNORED)
    for edit in mutant.mutation.source["py"]:
        path = target / edit.file
        text = path.read_text(encoding="utf-8")
        if text.count(edit.find) != 1:
            raise UsageError(
                f"{mutant.id}: {edit.find!r} occurs {text.count(edit.find)} times in {edit.file}",
                code="mutant_invalid",
            )
        path.write_text(text.replace(edit.find, edit.put), encoding="utf-8")


async def score_clients(
    program: ClientProgram,
    mutants: Sequence[Mutant],
    entries: Sequence[ClientVariant],
    *,
    folder: Path,
    jobs: int,
) -> AsyncGenerator[Event, None]:
    """Run the cases against each broken client until one of them detects it.

    Args:
        program: the client that is to be broken, whose folder is `client`.
        mutants: what is broken.
        entries: the cases.
        folder: holds the broken copies.
        jobs: how many clients are tested at a time.
    """
    yield ScoringStarted(len(entries))

    def run_good(
        entries: Sequence[ClientVariant], drivers: int
    ) -> AsyncGenerator[CaseFinished | SdkFinished, None]:
        start = partial(_start, program, program.folder, folder)
        return conform_client(program.name, start, entries, drivers=drivers)

    failing: dict[str, CaseResult] = {}
    async with aclosing(run_good(entries, jobs)) as events:
        async for event in events:
            if isinstance(event, SdkFinished):
                failing = _failing(event.result)
            else:
                yield BaselineCaseFinished()
    if failing:
        # One at a time: beside other drivers, a good client may exceed a limit.
        again = [entry for entry in entries if entry.id in failing]
        still = _failing(await _result(run_good(again, 1)))
        failing = {case: failing[case] for case in failing if case in still}
    slots = asyncio.Semaphore(jobs)

    async def test(mutant: Mutant) -> MutantResult:
        async with slots:
            return await _test(program, mutant, entries, folder / mutant.id)

    tasks = [asyncio.create_task(test(mutant)) for mutant in mutants]
    untested: set[str] = set()
    try:
        for task in asyncio.as_completed(tasks):
            result = await task
            if result.fate is Fate.UNTESTABLE:
                untested.add(result.id)
            else:
                yield MutantFinished(result)
    finally:
        for unfinished in tasks:
            unfinished.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for mutant in mutants:
        if mutant.id in untested:
            yield MutantFinished(await test(mutant))
    alarms = (
        FalseAlarm(check=check.id, result=check.result, got=check.got)
        for case in failing.values()
        for check in case.checks
        if check.result not in _PASSING
    )
    yield ScoringFinished(tuple(alarms), len(entries))


async def _result(events: AsyncGenerator[CaseFinished | SdkFinished, None]) -> SdkResult:
    async with aclosing(events):
        [result] = [e.result async for e in events if isinstance(e, SdkFinished)]
        return result


def _failing(result: SdkResult) -> dict[str, CaseResult]:
    """The cases that do not pass, those that were never run included."""
    return {
        case.case: case
        for case in result.cases
        if any(check.result not in _PASSING for check in case.checks)
    }


async def _test(
    program: ClientProgram, mutant: Mutant, entries: Sequence[ClientVariant], folder: Path
) -> MutantResult:
    started = time.perf_counter()
    await asyncio.to_thread(patch_client, program.folder, mutant, folder)
    # The cases of its rule first: most broken clients need no others.
    ordered = sorted(entries, key=lambda entry: mutant.rule not in entry.case.rules)
    cases, found, lost = 0, None, 0
    events = conform_client(
        program.name, lambda: _start(program, folder, folder), ordered, stop=_has_found
    )
    async with aclosing(events):
        async for event in events:
            if isinstance(event, SdkFinished):
                counts = event.result.counts()
                lost = counts[Result.UNTESTABLE] + counts[Result.ERROR]
                break
            cases += 1
            found = found or _detection(event.run.result)
    await asyncio.to_thread(shutil.rmtree, folder)
    return MutantResult(
        id=mutant.id,
        rule=mutant.rule,
        level="must" if mutant.level == "must" else "should",
        profile="client",
        breaks=mutant.breaks,
        fate=Fate.KILLED if found is not None else Fate.UNTESTABLE if lost else Fate.SURVIVED,
        by="" if found is None else found.id,
        got=[] if found is None else found.got[:5],
        cases=cases,
        took_s=round(time.perf_counter() - started, 3),
    )


def _detection(case: CaseResult) -> Check | None:
    """The first check that shows a defect."""
    shown = (Result.FAIL, Result.WARN)
    return next((check for check in case.checks if check.result in shown), None)


def _has_found(case: CaseResult) -> bool:
    return _detection(case) is not None


def _start(
    program: ClientProgram, folder: Path, logs: Path
) -> AbstractAsyncContextManager[tuple[Driver, Hello]]:
    """Start the driver of a client in the folder of its SDK, or of a copy."""
    return running_driver(
        program.name,
        program.argv(),
        env=program.environment(),
        cwd=folder,
        log=logs / "driver.log",
    )
