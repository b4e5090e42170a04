"""Runs all cases on one SDK: groups them by daemon, orders them, and runs them concurrently."""

import asyncio
import re
import time
import zlib
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from memconform.conformance.applicability import (
    embedder_skip_reason,
    reader_skip_reason,
    skip_reason,
)
from memconform.conformance.case import DaemonSettings
from memconform.conformance.case_runner import CaseRun, run_case, skipped_case
from memconform.conformance.catalog import CaseVariant
from memconform.conformance.causes import start_cause
from memconform.conformance.fixture import Fixture, UntestableError
from memconform.conformance.kept_daemons import KeptDaemons
from memconform.conformance.known_failures import KnownFailure, mark_expected, mark_stale
from memconform.conformance.results import CaseResult, Result, SdkResult
from memconform.daemons.sdk_runner import SdkRunner
from memconform.daemons.tasks import run_together
from memconform.errors import DaemonError
from memconform.printing.errors import render_error

_MAX_HUNG = 3
"""Consecutive cases that get no answer, each from a daemon just started, before it is given up."""

_HUNG_SECONDS = 900.0
"""How long the cases that share a daemon may wait for answers in vain, in total: sixty cases with
one unanswered request each, and the starts after them."""

MakeRunner = Callable[[], SdkRunner]
"""Creates a runner; each daemon needs one of its own, because a runner holds state."""


@dataclass(frozen=True, slots=True)
class Job:
    """Cases that share a daemon, in order."""

    settings: DaemonSettings
    entries: tuple[CaseVariant, ...]


@dataclass(frozen=True, slots=True)
class CaseFinished:
    """A case has been run on an SDK."""

    sdk: str
    run: CaseRun


@dataclass(frozen=True, slots=True)
class SdkFinished:
    """All cases of an SDK are done; the last of its events."""

    result: SdkResult


Event = CaseFinished | SdkFinished


def group_by_daemon(entries: Sequence[CaseVariant]) -> list[Job]:
    """Group cases that need the same daemon; cases that stop or start it form separate groups.

    The longest job comes first, so that the last one to finish is a short one.
    """
    shared: dict[tuple[str, bool, str], list[CaseVariant]] = {}
    for entry in entries:
        settings = entry.case.daemon
        alone = entry.id if settings.alone else ""
        key = (settings.model_dump_json(), entry.is_disruptive, alone)
        shared.setdefault(key, []).append(entry)
    jobs = [Job(group[0].case.daemon, tuple(group)) for group in shared.values()]
    return sorted(jobs, key=lambda job: -sum(_weight(entry) for entry in job.entries))


def _weight(entry: CaseVariant) -> int:
    """Return roughly how long a case takes, in tenths of a second; a start takes half a second."""
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
    has_controls: bool = True,
    stop: Callable[[CaseResult], bool] = lambda _: False,
    keep: KeptDaemons | None = None,
) -> AsyncGenerator[Event, None]:
    """Run `entries` on an SDK and yield events; the last one has all results.

    Args:
        name: Name of the SDK in events and results.
        make_runner: Creates a runner for each daemon.
        entries: The cases, in the order in which results are reported.
        known: Known failures.
        folder: Holds the state and logs of daemons.
        run_id: Prefix of the daemons' run ids.
        slots: Bounds how many daemons run at once.
        has_controls: Whether rejections are compared with valid requests to the same route.
        stop: No more cases are started once it returns True for a result.
        keep: Takes over daemons that stay up; None stops all.
    """
    started = time.perf_counter()
    runner = make_runner()
    results: dict[str, CaseResult] = {}
    queue: asyncio.Queue[CaseRun | None] = asyncio.Queue()
    applicable: list[CaseVariant] = []
    of_other_readers: list[str] = []
    of_other_embedders: list[str] = []
    for entry in entries:
        why = skip_reason(entry, runner)
        if why is None:
            applicable.append(entry)
        else:
            results[entry.id] = skipped_case(entry, Result.NOT_APPLICABLE, why)
            if entry.needed_readers and why == reader_skip_reason(entry, runner):
                of_other_readers.append(entry.id)
            elif entry.needed_embedders and why == embedder_skip_reason(entry, runner):
                of_other_embedders.append(entry.id)
    stopping = asyncio.Event()
    job_runner = _JobRunner(
        name=name,
        make_runner=make_runner,
        folder=folder,
        run_id=run_id,
        slots=slots,
        has_controls=has_controls,
        queue=queue,
        stopping=stopping,
        keep=keep,
    )
    worker = asyncio.create_task(job_runner.work(group_by_daemon(applicable)))
    try:
        while (run := await queue.get()) is not None:
            case = mark_expected(run.result, name, known)
            results[case.case] = case
            if stop(case):
                stopping.set()
            yield CaseFinished(name, replace(run, result=case))
        problems = await worker
    finally:
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)
    if keep is not None:
        results = {case: keep.readdressed(name, result) for case, result in results.items()}
    for entry in entries:
        if entry.id not in results:
            results[entry.id] = (
                skipped_case(entry, Result.NOT_APPLICABLE, "skipped because the run stopped early")
                if stopping.is_set()
                else skipped_case(entry, Result.UNTESTABLE, "its daemon is no longer available")
            )
    yield SdkFinished(
        SdkResult(
            sdk=name,
            profiles=[profile.value for profile in runner.profiles],
            modes=[mode.value for mode in runner.modes or ()],
            cases=mark_stale([results[entry.id] for entry in entries], name, known),
            problems=problems,
            readers=None if runner.readers is None else [r.value for r in runner.readers],
            unclaimed_reader_cases=of_other_readers,
            embedders=None if runner.embedders is None else [e.value for e in runner.embedders],
            unclaimed_embedder_cases=of_other_embedders,
            took_s=round(time.perf_counter() - started, 3),
        )
    )


class _JobRunner:
    """Runs the jobs of one SDK and puts the case runs into `queue`, then None."""

    def __init__(
        self,
        *,
        name: str,
        make_runner: MakeRunner,
        folder: Path,
        run_id: str,
        slots: asyncio.Semaphore,
        has_controls: bool,
        queue: "asyncio.Queue[CaseRun | None]",
        stopping: asyncio.Event,
        keep: KeptDaemons | None,
    ) -> None:
        self._keep = keep
        self._name = name
        self._make_runner = make_runner
        self._folder = folder
        self._run_id = run_id
        self._slots = slots
        self._has_controls = has_controls
        self._queue = queue
        self._stopping = stopping

    async def work(self, all_jobs: Sequence[Job]) -> list[str]:
        """Run all jobs; return problems of daemons that belong to no case."""
        try:
            outcomes = await run_together(*(self._job(n, job) for n, job in enumerate(all_jobs)))
            return [problem for problems in outcomes for problem in problems]
        finally:
            self._queue.put_nowait(None)

    async def _job(self, number: int, job: Job) -> list[str]:
        async with self._slots:
            if self._stopping.is_set():
                return []
            label = f"{self._name}-{number:03}"
            run_id = f"{self._run_id}-{label}"
            fixture = Fixture(
                self._make_runner(),
                job.settings,
                self._folder / label,
                run_id,
                has_controls=self._has_controls,
                keeps_brains=self._keep is not None,
            )
            try:
                async with AsyncExitStack() as stack:
                    await stack.enter_async_context(fixture)
                    problems = await self._run_job(fixture, job)
                    if self._keep is not None and fixture.addresses:
                        taken = await self._keep.take(
                            self._name, fixture, job.entries, is_main=number == 0
                        )
                        if taken:
                            stack.pop_all()
                    return problems
            except DaemonError as error:
                # A failure to start is reported by every case; this is a failure to stop.
                return [render_error(error)]

    async def _run_job(self, fixture: Fixture, job: Job) -> list[str]:
        try:
            await fixture.prepare()
        except (UntestableError, DaemonError) as error:
            why, cause = _why(error, job)
            for entry in job.entries:
                skipped = skipped_case(entry, Result.UNTESTABLE, why, cause)
                self._queue.put_nowait(CaseRun(skipped, []))
            return []
        concurrent = [entry for entry in job.entries if entry.case.concurrent]
        serial = [entry for entry in job.entries if not entry.case.concurrent]
        tasks = [asyncio.create_task(self._beside(entry, fixture)) for entry in concurrent]
        try:
            await self._serial(serial, fixture)
            lost = [entry for entry in await asyncio.gather(*tasks) if entry is not None]
            await self._serial(lost, fixture)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return []

    async def _serial(self, entries: Sequence[CaseVariant], fixture: Fixture) -> None:
        """Run cases in order; once the daemon is unavailable, report the rest as untestable."""
        hangs, why, cause = _Hangs(fixture), "", ""
        for entry in entries:
            if self._stopping.is_set():
                break
            if not why:
                try:
                    await fixture.restore()
                except DaemonError as error:
                    why = render_error(error)
                    cause = start_cause(error, entry.case.daemon.env)
            if why:
                skipped = skipped_case(entry, Result.UNTESTABLE, why, cause)
                self._queue.put_nowait(CaseRun(skipped, []))
                continue
            run = await run_case(entry, fixture, brain_id(entry))
            try:
                if await hangs.recover(run) and run.hung:
                    # The case before left the daemon in this state: it alone is lost.
                    run = await run_case(entry, fixture, brain_id(entry))
                    await hangs.recover(run)
            except DaemonError as error:
                why, cause = render_error(error), start_cause(error, entry.case.daemon.env)
            self._queue.put_nowait(run)
            if hangs.verdict and not why:
                why, cause = hangs.verdict, "the daemon does not answer any more"

    async def _beside(self, entry: CaseVariant, fixture: Fixture) -> CaseVariant | None:
        """Run a case beside others; return it, unreported, if another's daemon died under it."""
        run = await run_case(entry, fixture, brain_id(entry))
        if any(check.result is Result.UNTESTABLE for check in run.result.checks):
            return entry
        self._queue.put_nowait(run)
        return None


class _Hangs:
    """Restarts a daemon that has stopped answering, as long as that is likely to help."""

    def __init__(self, fixture: Fixture) -> None:
        self._fixture = fixture
        self._is_new = True
        """Whether the daemon has been started since the last case that got an answer."""
        self._in_a_row = 0
        self._seconds = 0.0
        self.verdict = ""
        """Why no more cases should be run; empty if they should."""

    async def recover(self, run: CaseRun) -> bool:
        """Restart the daemon if it answers no more.

        Returns:
            Whether a case that got no answer should be run again on the daemon just started.

        Raises:
            DaemonError: if the daemon does not start.
        """
        was_new, self._is_new = self._is_new, self._is_new and run.hung
        if not run.unanswered:
            self._in_a_row = 0
            return False
        self._seconds += run.result.took_ms / 1e3
        can_restart = self._fixture.runner.restartable
        if run.hung and (was_new or not can_restart):
            self._in_a_row += 1
        elif not run.hung:
            self._in_a_row = 0
        name = self._fixture.runner.name
        if self._in_a_row == _MAX_HUNG:
            self.verdict = (
                f"{name} was given up: after each of {_MAX_HUNG} starts in a row, it did not answer"
                " the first request of a case"
                if can_restart
                else f"{name} did not answer {_MAX_HUNG} cases in a row, and memconform cannot"
                " restart a daemon that it did not start"
            )
        elif self._seconds > _HUNG_SECONDS:
            self.verdict = (
                f"{name} was given up: its cases waited {self._seconds:.0f} s in total for answers"
                " that did not come"
            )
        if self.verdict or not can_restart:
            return False
        if not run.hung and await self._fixture.answers():
            return False
        await self._fixture.restart()
        self._is_new = True
        return not was_new


def _why(error: UntestableError | DaemonError, job: Job) -> tuple[str, str]:
    """Return why the cases of a job cannot be run, and the cause."""
    if isinstance(error, DaemonError):
        return render_error(error), start_cause(error, job.settings.env)
    return str(error), error.cause


BRAIN_PREFIX = "mc-"
"""Prefix of the ids of all brains that cases create."""


def brain_id(entry: CaseVariant) -> str:
    """Return the id of a case's brain: unique to the case, and the same in each run.

    A command in a report can therefore be repeated.
    """
    plain = re.sub(r"[^A-Za-z0-9-]+", "-", entry.id).strip("-").lower()[:100]
    # Variants may differ only in characters that an id cannot contain.
    suffix = "" if plain == entry.id else f"-{zlib.crc32(entry.id.encode()):08x}"
    return f"{BRAIN_PREFIX}{plain}{suffix}"
