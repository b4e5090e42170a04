"""Runs client cases on the clients of SDKs, several drivers at a time."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace

from memconform.conformance.case_runner import CaseRun
from memconform.conformance.clients.case_runner import (
    failed_driver,
    run_client_case,
    skip_reason,
    skipped_case,
)
from memconform.conformance.clients.catalog import ClientVariant
from memconform.conformance.clients.driver import Driver, DriverError, Hello
from memconform.conformance.known_failures import KnownFailure, mark_expected, mark_stale
from memconform.conformance.results import CaseResult, Result, SdkResult
from memconform.conformance.suite import CaseFinished, Event, SdkFinished
from memconform.errors import DaemonError
from memconform.printing.errors import render_error

_MOST_FAILURES = 3
"""Drivers in a row that fail, or answer no call, before the rest of the cases is given up."""

StartDriver = Callable[[], AbstractAsyncContextManager[tuple[Driver, Hello]]]


@dataclass(slots=True)
class _Queue:
    """The cases that are still to be run, and the runs that are still to be reported."""

    entries: list[ClientVariant]
    runs: asyncio.Queue[CaseRun | None]
    driver: str = ""
    """What the driver calls itself."""
    problem: str = ""
    """Why no further driver is started."""


async def conform_client(
    name: str,
    start: StartDriver,
    entries: Sequence[ClientVariant],
    *,
    known: Sequence[KnownFailure] = (),
    drivers: int = 1,
    stop: Callable[[CaseResult], bool] = lambda _: False,
) -> AsyncGenerator[Event, None]:
    """Run cases on a client and yield events; the last one has all results.

    Args:
        name: of the SDK.
        start: starts a driver.
        entries: the cases, in the order in which results are reported.
        known: known failures.
        drivers: how many drivers run at a time.
        stop: no more cases are started once it returns True for a result.
    """
    started = time.perf_counter()
    queue = _Queue(list(reversed(entries)), asyncio.Queue())
    results: dict[str, CaseResult] = {}

    async def work() -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(drivers):
                    group.create_task(_work(queue, start))
        finally:
            queue.runs.put_nowait(None)

    worker = asyncio.create_task(work())
    try:
        while (run := await queue.runs.get()) is not None:
            case = mark_expected(run.result, name, known)
            results[case.case] = case
            if stop(case):
                queue.entries.clear()
            yield CaseFinished(name, replace(run, result=case))
        await worker
    finally:
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)
    for entry in entries:
        if entry.id not in results:
            results[entry.id] = (
                skipped_case(entry, Result.UNTESTABLE, queue.problem, cause=_NO_DRIVER)
                if queue.problem
                else skipped_case(entry, Result.NOT_APPLICABLE, "the run stopped early")
            )
    yield SdkFinished(
        SdkResult(
            sdk=name,
            profiles=["client"],
            modes=[],
            cases=mark_stale([results[entry.id] for entry in entries], name, known),
            driver=queue.driver,
            took_s=round(time.perf_counter() - started, 3),
        )
    )


_NO_DRIVER = "the driver fails in every case"


async def _work(queue: _Queue, start: StartDriver) -> None:
    """Run cases until none is left; a driver that fails, or hangs, is replaced."""
    failures = hung = 0
    while queue.entries and not queue.problem:
        entry: ClientVariant | None = None
        try:
            async with start() as (driver, hello):
                queue.driver = hello.driver
                while queue.entries:
                    entry = queue.entries.pop()
                    run = await _run(entry, driver, hello)
                    queue.runs.put_nowait(run)
                    entry = None
                    if run.result.result is not Result.NOT_APPLICABLE:
                        failures = 0
                    # After a bug of memconform the driver is replaced, and not to blame.
                    is_silent = run.hung and run.result.result is not Result.ERROR
                    hung = hung + 1 if is_silent else 0
                    if hung == _MOST_FAILURES:
                        queue.problem = f"the driver of {hello.driver} answers no call"
                    if run.hung:
                        break
        except DaemonError as error:
            failures += 1
            if entry is not None and isinstance(error, DriverError):
                queue.runs.put_nowait(CaseRun(failed_driver(entry, error), []))
            elif entry is not None:
                queue.entries.append(entry)
            if not queue.driver or failures == _MOST_FAILURES:
                # One that has never begun will not: with its limit of a minute, no other is tried.
                queue.problem = render_error(error)


async def _run(entry: ClientVariant, driver: Driver, hello: Hello) -> CaseRun:
    why = skip_reason(entry, hello)
    if why is not None:
        return CaseRun(skipped_case(entry, Result.NOT_APPLICABLE, why), [])
    try:
        return await run_client_case(entry, driver, hello)
    except DaemonError:
        raise
    except Exception as error:  # noqa: BLE001 - a bug of the harness must not lose the other cases
        bug = f"a bug in memconform: {type(error).__name__}"
        return CaseRun(skipped_case(entry, Result.ERROR, repr(error), cause=bug), [], hung=True)
