"""Puts all cases to one SDK: which daemons they need, in which order, side by side or not."""

import asyncio
import re
import time
import zlib
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from memconform.conformance.case import Serving
from memconform.conformance.catalog import CaseVariant
from memconform.conformance.fixture import Fixture, UntestableError
from memconform.conformance.known import KnownFailure, mark_expected, mark_stale
from memconform.conformance.results import CaseResult, Result, SdkResult
from memconform.conformance.running import CaseRun, run_case, skip_reason, skipped_case
from memconform.daemons.runner import SdkRunner
from memconform.errors import DaemonError

_GIVEN_UP = 3
"""Cases in a row to which a daemon does not answer, before the rest is not put to it any more."""

MakeRunner = Callable[[], SdkRunner]
"""A runner of one's own for each daemon: where it points is its own state."""


@dataclass(frozen=True, slots=True)
class Job:
    """Cases that one daemon serves, in order."""

    serving: Serving
    entries: tuple[CaseVariant, ...]


@dataclass(frozen=True, slots=True)
class CaseFinished:
    sdk: str
    ran: CaseRun


@dataclass(frozen=True, slots=True)
class SdkFinished:
    result: SdkResult


Event = CaseFinished | SdkFinished


def group_by_daemon(entries: Sequence[CaseVariant]) -> list[Job]:
    """Cases that want the same daemon share one; those that end or start it, another of that kind.

    What takes longest comes first, so that the last one to end is a short one.
    """
    shared: dict[tuple[str, bool, str], list[CaseVariant]] = {}
    for entry in entries:
        serving = entry.case.daemon
        alone = entry.id if serving.alone else ""
        key = (serving.model_dump_json(), entry.is_disruptive, alone)
        shared.setdefault(key, []).append(entry)
    found = [Job(group[0].case.daemon, tuple(group)) for group in shared.values()]
    return sorted(found, key=lambda job: -sum(_weight(entry) for entry in job.entries))


def _weight(entry: CaseVariant) -> int:
    """Roughly how long a case takes, in tenths of a second: starting a daemon takes half a one."""
    return 250 if entry.case.concurrent else 10 if entry.is_disruptive else 1


async def conform(
    name: str,
    make_runner: MakeRunner,
    entries: Sequence[CaseVariant],
    *,
    known: Sequence[KnownFailure],
    folder: Path,
    run_id: str,
    slots: asyncio.Semaphore,
    stop: Callable[[CaseResult], bool] = lambda _: False,
) -> AsyncGenerator[Event, None]:
    """Run `entries` on an SDK; `slots` bounds how many daemons run at once.

    Nothing new begins once `stop` says so of a case. Results are in the order of
    `entries`, whatever ended first.
    """
    started = time.perf_counter()
    runner = make_runner()
    results: dict[str, CaseResult] = {}
    queue: asyncio.Queue[CaseRun | None] = asyncio.Queue()
    wanted: list[CaseVariant] = []
    for entry in entries:
        why = skip_reason(entry, runner)
        if why is None:
            wanted.append(entry)
        else:
            results[entry.id] = skipped_case(entry, Result.NOT_APPLICABLE, why)
    stopping = asyncio.Event()
    crew = _JobRunner(
        name=name,
        make_runner=make_runner,
        folder=folder,
        run_id=run_id,
        slots=slots,
        queue=queue,
        stopping=stopping,
    )
    working = asyncio.create_task(crew.work(group_by_daemon(wanted)))
    try:
        while (ran := await queue.get()) is not None:
            case = mark_expected(ran.result, name, known)
            results[case.case] = case
            if stop(case):
                stopping.set()
            yield CaseFinished(name, replace(ran, result=case))
        problems = await working
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
    for entry in entries:
        if entry.id not in results:
            results[entry.id] = (
                skipped_case(entry, Result.NOT_APPLICABLE, "skipped once enough was seen")
                if stopping.is_set()
                else skipped_case(entry, Result.UNTESTABLE, "its daemon was lost")
            )
    yield SdkFinished(
        SdkResult(
            sdk=name,
            profiles=[profile.value for profile in runner.profiles],
            modes=[mode.value for mode in runner.modes or ()],
            cases=mark_stale([results[entry.id] for entry in entries], name, known),
            problems=problems,
            took_s=round(time.perf_counter() - started, 3),
        )
    )


class _JobRunner:
    """Carries out the jobs of one SDK; what cases come to goes into `queue`, None at the end."""

    def __init__(
        self,
        *,
        name: str,
        make_runner: MakeRunner,
        folder: Path,
        run_id: str,
        slots: asyncio.Semaphore,
        queue: "asyncio.Queue[CaseRun | None]",
        stopping: asyncio.Event,
    ) -> None:
        self._name = name
        self._make_runner = make_runner
        self._folder = folder
        self._run_id = run_id
        self._slots = slots
        self._queue = queue
        self._stopping = stopping

    async def work(self, all_jobs: Sequence[Job]) -> list[str]:
        """Every job; what went wrong with daemons, and not with cases."""
        try:
            found = await asyncio.gather(*(self._job(n, job) for n, job in enumerate(all_jobs)))
            return [problem for problems in found for problem in problems]
        finally:
            self._queue.put_nowait(None)

    async def _job(self, number: int, job: Job) -> list[str]:
        async with self._slots:
            if self._stopping.is_set():
                return []
            label = f"{self._name}-{number:03}"
            run_id = f"{self._run_id}-{label}"
            fixture = Fixture(self._make_runner(), job.serving, self._folder / label, run_id)
            try:
                async with fixture:
                    return await self._served(fixture, job)
            except DaemonError as error:
                # At its start all cases were told; what is left of it at its end is told here.
                return [error.render()]

    async def _served(self, fixture: Fixture, job: Job) -> list[str]:
        try:
            await fixture.prepare()
        except (UntestableError, DaemonError) as error:
            why = error.render() if isinstance(error, DaemonError) else str(error)
            for entry in job.entries:
                self._queue.put_nowait(CaseRun(skipped_case(entry, Result.UNTESTABLE, why), []))
            return []
        beside = [entry for entry in job.entries if entry.case.concurrent]
        serial = [entry for entry in job.entries if not entry.case.concurrent]
        waiting = [asyncio.create_task(self._case(entry, fixture)) for entry in beside]
        try:
            await self._serial(serial, fixture)
            await asyncio.gather(*waiting)
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
        return []

    async def _serial(self, entries: Sequence[CaseVariant], fixture: Fixture) -> None:
        """One after another, until none is left or the daemon cannot be had any more."""
        hung, why = 0, ""
        for entry in entries:
            if self._stopping.is_set():
                break
            if not why:
                try:
                    await fixture.restore()
                except DaemonError as error:
                    why = error.render()
            if why:
                self._queue.put_nowait(CaseRun(skipped_case(entry, Result.UNTESTABLE, why), []))
                continue
            ran = await self._case(entry, fixture)
            hung = hung + 1 if ran.hung else 0
            if hung == _GIVEN_UP:
                why = f"the daemon did not answer {_GIVEN_UP} cases in a row"

    async def _case(self, entry: CaseVariant, fixture: Fixture) -> CaseRun:
        ran = await run_case(entry, fixture, brain_id(entry))
        self._queue.put_nowait(ran)
        return ran


BRAIN_PREFIX = "mc-"
"""Of the ids of all brains that cases make."""


def brain_id(entry: CaseVariant) -> str:
    """The same for the same case, and no other's: what is in a report can be typed again."""
    plain = re.sub(r"[^A-Za-z0-9-]+", "-", entry.id).strip("-").lower()[:100]
    # Variants may differ in nothing but what an id cannot hold.
    told_apart = "" if plain == entry.id else f"-{zlib.crc32(entry.id.encode()):08x}"
    return f"{BRAIN_PREFIX}{plain}{told_apart}"
