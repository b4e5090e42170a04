"""Runs the cases of one SDK: those that share a daemon in order, and several daemons at once."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from memconform.concurrency import Slots
from memconform.conformance.case import DaemonSettings
from memconform.conformance.case_runner import CaseRun, run_case, skipped_case
from memconform.conformance.catalog import CaseVariant, brain_id
from memconform.conformance.causes import is_timeout, start_cause
from memconform.conformance.fixture import Fixture, UntestableError
from memconform.conformance.kept_daemons import KeptDaemons
from memconform.conformance.results import Result
from memconform.daemons.sdk_runner import SdkRunner
from memconform.daemons.tasks import run_together
from memconform.errors import DaemonError
from memconform.printing.errors import render_error

_MAX_HUNG = 3
"""Consecutive cases that get no answer, each from a daemon just started, before it is given up."""

_HUNG_SECONDS = 900.0
"""How long the cases that share a daemon may wait for answers in vain, in total: sixty cases with
one unanswered request each, and the starts after them."""

_MAX_TIMEOUTS = 3
"""Consecutive repeats that time out too, before the other cases are not repeated."""

MakeRunner = Callable[[], SdkRunner]
"""Creates a runner; each daemon needs one of its own, because a runner holds state."""


@dataclass(frozen=True, slots=True)
class Job:
    """Cases that share a daemon, in order."""

    settings: DaemonSettings
    entries: tuple[CaseVariant, ...]


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


class JobRunner:
    """Runs the jobs of one SDK."""

    def __init__(
        self,
        *,
        name: str,
        make_runner: MakeRunner,
        folder: Path,
        run_id: str,
        slots: Slots,
        has_controls: bool,
        stopping: asyncio.Event,
        keep: KeptDaemons | None,
        is_repeat: bool = False,
    ) -> None:
        self._keep = keep
        self._name = name
        self._make_runner = make_runner
        self._folder = folder
        self._run_id = run_id
        self._slots = slots
        self._has_controls = has_controls
        self._stopping = stopping
        self._is_repeat = is_repeat
        """Whether these are repeats, with nothing beside them."""
        self._queue: asyncio.Queue[CaseRun | None] = asyncio.Queue()
        self._timeouts = 0
        self.problems: list[str] = []
        """Failures of daemons that belong to no case."""

    async def run(self, entries: Sequence[CaseVariant]) -> AsyncGenerator[CaseRun, None]:
        """Run cases and yield them as they finish."""
        worker = asyncio.create_task(self._work(group_by_daemon(entries)))
        try:
            while (run := await self._queue.get()) is not None:
                yield run
            await worker
        finally:
            worker.cancel()
            await asyncio.gather(worker, return_exceptions=True)

    async def _work(self, jobs: Sequence[Job]) -> None:
        try:
            await run_together(*(self._job(number, job) for number, job in enumerate(jobs)))
        finally:
            self._queue.put_nowait(None)

    @property
    def _is_over(self) -> bool:
        return self._stopping.is_set() or self._timeouts >= _MAX_TIMEOUTS

    async def _job(self, number: int, job: Job) -> None:
        async with self._slots.all() if self._is_repeat else self._slots:
            if self._is_over:
                return
            label = f"{self._name}-{number:03}{'-again' if self._is_repeat else ''}"
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
                    await self._run_job(fixture, job)
                    if self._keep is not None and fixture.addresses:
                        is_main = number == 0 and not self._is_repeat
                        taken = await self._keep.take(
                            self._name, fixture, job.entries, is_main=is_main
                        )
                        if taken:
                            stack.pop_all()
            except DaemonError as error:
                # A failure to start is reported by every case; this is a failure to stop.
                self.problems.append(render_error(error))

    async def _run_job(self, fixture: Fixture, job: Job) -> None:
        try:
            await fixture.prepare()
        except (UntestableError, DaemonError) as error:
            loss = _DaemonLoss.of(error, job.settings)
            for entry in job.entries:
                self._queue.put_nowait(loss.run(entry))
            self._count(timed_out=loss.is_timeout)
            return
        concurrent = [e for e in job.entries if e.case.concurrent and not self._is_repeat]
        serial = [entry for entry in job.entries if entry not in concurrent]
        tasks = [asyncio.create_task(self._beside(entry, fixture)) for entry in concurrent]
        try:
            await self._serial(serial, fixture)
            lost = [entry for entry in await asyncio.gather(*tasks) if entry is not None]
            await self._serial(lost, fixture)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _count(self, *, timed_out: bool) -> None:
        self._timeouts = self._timeouts + 1 if timed_out and self._is_repeat else 0

    async def _serial(self, entries: Sequence[CaseVariant], fixture: Fixture) -> None:
        """Run cases in order; once the daemon is unavailable, report the rest as untestable."""
        hangs, loss = _Hangs(fixture), None
        for entry in entries:
            if self._is_over:
                break
            if loss is None:
                try:
                    await fixture.restore()
                except DaemonError as error:
                    loss = _DaemonLoss.of(error, entry.case.daemon)
            if loss is not None:
                self._queue.put_nowait(loss.run(entry))
                continue
            run = await run_case(entry, fixture, brain_id(entry))
            try:
                if await hangs.recover(run) and run.hung:
                    # The case before left the daemon in this state: it alone is lost.
                    run = await run_case(entry, fixture, brain_id(entry))
                    await hangs.recover(run)
            except DaemonError as error:
                loss = _DaemonLoss.of(error, entry.case.daemon)
            self._queue.put_nowait(run)
            self._count(timed_out=run.timed_out)
            if hangs.verdict and loss is None:
                cause = "the daemon does not answer any more"
                loss = _DaemonLoss(hangs.verdict, cause, is_timeout=True)

    async def _beside(self, entry: CaseVariant, fixture: Fixture) -> CaseVariant | None:
        """Run a case beside others; return it, unreported, if another's daemon died under it."""
        run = await run_case(entry, fixture, brain_id(entry))
        if any(check.result is Result.UNTESTABLE for check in run.result.checks):
            return entry
        self._queue.put_nowait(run)
        return None


@dataclass(frozen=True, slots=True)
class _DaemonLoss:
    """Why no more cases can be run on a daemon, and the cause."""

    why: str
    cause: str
    is_timeout: bool

    @classmethod
    def of(cls, error: UntestableError | DaemonError, settings: DaemonSettings) -> Self:
        """The loss of a daemon that cannot be started."""
        if isinstance(error, DaemonError):
            return cls(render_error(error), start_cause(error, settings.env), is_timeout(error))
        return cls(str(error), error.cause, is_timeout(error))

    def run(self, entry: CaseVariant) -> CaseRun:
        """What is reported of a case of the daemon."""
        skipped = skipped_case(entry, Result.UNTESTABLE, self.why, self.cause)
        return CaseRun(skipped, [], timed_out=self.is_timeout)


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
