"""Runs the cases against each mutant until one of them detects it."""

import asyncio
import re
import shutil
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

from memconform.concurrency import Slots
from memconform.conformance.applicability import skip_reason
from memconform.conformance.case_runner import run_case, skipped_case
from memconform.conformance.catalog import CaseVariant, brain_id
from memconform.conformance.fixture import UntestableError
from memconform.conformance.job_runner import MakeRunner
from memconform.conformance.mutation.daemon_pool import DaemonPool
from memconform.conformance.mutation.mutant import Mutant
from memconform.conformance.mutation.mutant_progress import MutantProgress, detecting_check
from memconform.conformance.mutation.mutant_runner import mutant_of
from memconform.conformance.mutation.mutation import Mutation
from memconform.conformance.mutation.results import FalseAlarm, MutantResult
from memconform.conformance.results import CaseResult, Check, Result
from memconform.conformance.suite import CaseFinished, SdkFinished, conform
from memconform.daemons.sdk_runner import SdkRunner
from memconform.errors import DaemonError
from memconform.printing.logs import Logger

_log = Logger()

_PASSING = (Result.PASS, Result.NOT_APPLICABLE)


@dataclass(frozen=True, slots=True)
class ScoringStarted:
    """The run begins with `cases` cases on the unmodified daemon."""

    cases: int


@dataclass(frozen=True, slots=True)
class BaselineCaseFinished:
    """A case has been run on the unmodified daemon."""


@dataclass(frozen=True, slots=True)
class MutantFinished:
    """The cases were run on a mutant, until one killed it or none was left."""

    result: MutantResult


@dataclass(frozen=True, slots=True)
class ScoringFinished:
    """All mutants are done; the last event."""

    alarms: tuple[FalseAlarm, ...]
    cases: int
    """Number of cases run on the unmodified daemon."""


Event = ScoringStarted | BaselineCaseFinished | MutantFinished | ScoringFinished


def is_applicable(mutant: Mutant, runner: SdkRunner, entries: Sequence[CaseVariant]) -> bool:
    """Whether a mutant can be applied to this SDK, which must claim the profile of its rule.

    At least one of `entries`, the cases that apply to the SDK, must be likely to detect it.
    """
    if mutant.profile is not None and mutant.profile not in runner.profiles:
        return False
    if not any(mutant.concerns(entry) for entry in entries):
        return False
    if mutant.mutation.source:
        return runner.restartable and runner.name in mutant.mutation.source
    return runner.restartable or mutant.mutation.is_of_exchanges


async def score(
    make_runner: MakeRunner,
    mutants: Sequence[Mutant],
    entries: Sequence[CaseVariant],
    *,
    folder: Path,
    daemons: int,
) -> AsyncGenerator[Event, None]:
    """Run the cases on the unmodified daemon, then those that pass there on each mutant.

    Args:
        make_runner: Creates a runner of the unmodified daemon.
        mutants: The mutants.
        entries: The cases that apply to the SDK.
        folder: Holds the state of daemons while they run.
        daemons: Maximum number of daemons that run at once.
    """
    if not make_runner().restartable:
        # There is only one daemon, and concurrent mutants would share its brains.
        daemons = 1
    pool = DaemonPool(make_runner, folder, daemons)
    scorer = _MutantScorer(make_runner, folder, Slots(daemons), pool)
    citing = [entry for entry in entries if any(mutant.concerns(entry) for mutant in mutants)]
    yield ScoringStarted(len(citing))
    async with aclosing(scorer.run_baseline(citing)) as cases:
        async for _ in cases:
            yield BaselineCaseFinished()

    all_progress, survivors = [MutantProgress(mutant) for mutant in mutants], []
    try:
        async with aclosing(
            _run_settled(daemons, scorer, scorer.run_citing, all_progress, entries)
        ) as settled:
            async for progress in settled:
                if progress.detection is None:
                    survivors.append(progress)
                else:
                    await scorer.drop_build(progress.mutant)
                    yield MutantFinished(progress.result())
        # Survivors come last: one of them takes as long as hundreds of killed mutants.
        if any(progress.mutant.finder is None for progress in survivors):
            async with aclosing(scorer.run_baseline(entries)) as cases:
                async for _ in cases:
                    pass
        async with aclosing(
            _run_settled(daemons, scorer, scorer.run_others, survivors, entries)
        ) as settled:
            async for progress in settled:
                await scorer.drop_build(progress.mutant)
                yield MutantFinished(progress.result())
    finally:
        await pool.close()
    alarms = sorted(scorer.alarms, key=lambda alarm: alarm.check)
    yield ScoringFinished(tuple(alarms), len(scorer.baseline))


_Run = Callable[[MutantProgress, Sequence[CaseVariant]], Awaitable[None]]


async def _run_settled(
    daemons: int,
    scorer: "_MutantScorer",
    run: _Run,
    all_progress: Sequence[MutantProgress],
    entries: Sequence[CaseVariant],
) -> AsyncGenerator[MutantProgress, None]:
    """Run each mutant, and yield them as they finish; cases that were cut short are repeated alone.

    Mutants that ran beside them may have used up their time, as eight daemons did on two cores.
    """
    async with aclosing(_run_all(daemons, run, all_progress, entries)) as finished:
        async for progress in finished:
            if not progress.untested:
                yield progress
    untested = [progress for progress in all_progress if progress.untested]
    async with aclosing(_run_all(1, scorer.run_untested, untested, entries)) as finished:
        async for progress in finished:
            yield progress


async def _run_all(
    limit: int,
    run: _Run,
    all_progress: Sequence[MutantProgress],
    entries: Sequence[CaseVariant],
) -> AsyncGenerator[MutantProgress, None]:
    """Run each mutant, at most `limit` at once, and yield them as they finish."""
    slots = asyncio.Semaphore(limit)

    async def run_one(progress: MutantProgress) -> MutantProgress:
        async with slots:
            await run(progress, entries)
        return progress

    tasks = [asyncio.create_task(run_one(progress)) for progress in all_progress]
    try:
        for finished in asyncio.as_completed(tasks):
            yield await finished
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _MutantScorer:
    def __init__(
        self, make_runner: MakeRunner, folder: Path, slots: Slots, pool: DaemonPool
    ) -> None:
        self._make_runner = make_runner
        self._folder = folder
        self._slots = slots
        self._session = pool.session
        self._pool = pool
        self._is_managed = make_runner().restartable
        """Whether memconform starts the daemon; otherwise some cases cannot be tested."""
        self._problems: list[str] = []
        """Why the unmodified daemon was lost when it last ran; they belong to no case."""
        self.alarms: list[FalseAlarm] = []
        self.baseline: dict[str, str] = {}
        """Why each case does not pass on the unmodified daemon, by id; "" if it passes."""

    async def run_baseline(
        self, entries: Sequence[CaseVariant]
    ) -> AsyncGenerator[CaseResult, None]:
        """Run cases on the unmodified daemon, except those that already were.

        Those that do not pass are repeated one at a time: beside others, of eight daemons on two
        cores, a good daemon may exceed a limit.
        """
        new = [entry for entry in entries if entry.id not in self.baseline]
        if not new:
            return
        self._problems = []
        results: dict[str, CaseResult] = {}
        async with aclosing(self.run("good", Mutation(), new)) as cases:
            async for case in cases:
                results[case.case] = case
                yield case
        if suspects := [e for e in new if e.id not in results or _failing(results[e.id])]:
            alone = Slots(1)
            async with aclosing(self.run("again", Mutation(), suspects, slots=alone)) as cases:
                async for case in cases:
                    if not _failing(case):
                        _log.warning("a case passes only alone", case=case.case)
                        results[case.case] = case
                    # What failed first says more than what could not be tested then.
                    results.setdefault(case.case, case)
        self.alarms += [
            FalseAlarm(check="", result=Result.UNTESTABLE.value, got=[problem])
            for problem in self._problems
        ]
        for entry in new:
            # After its daemon was lost, a case has no result at all.
            self.baseline[entry.id] = f"{entry.id} could not be run on the unmodified daemon"
        for case in results.values():
            self.baseline[case.case] = "".join(
                f"{c.id} does not pass on the unmodified daemon: {' '.join(c.got)}"
                for c in _failing(case)[:1]
            )
            self.alarms += [
                FalseAlarm(check=c.id, result=c.result.value, got=c.got[:5])
                for c in _failing(case)
                if self._is_managed or c.result is not Result.UNTESTABLE
            ]

    async def run(
        self,
        label: str,
        mutation: Mutation,
        entries: Sequence[CaseVariant],
        mutant: Mutant | None = None,
        slots: Slots | None = None,
    ) -> AsyncGenerator[CaseResult, None]:
        """Run cases; start no more once one of them has detected `mutant`."""
        folder = self._folder / _slug(label)
        events = conform(
            "mutant",
            lambda: mutant_of(self._make_runner(), mutation, self._builds(mutant)),
            entries,
            known=(),
            folder=folder,
            run_id=f"{self._session}-{label}",
            slots=slots or self._slots,
            # Those of the unmodified daemon have been sent; here they would use up `skip` and
            # `times` of a mutation.
            has_controls=mutant is None,
            # `run_untested` repeats cases once no mutant runs, and `run_baseline` whatever failed.
            repeats=False,
            stop=lambda case: mutant is not None and detecting_check(mutant, case) is not None,
        )
        async with aclosing(events):
            async for event in events:
                match event:
                    case CaseFinished(run=run):
                        yield run.result
                    case SdkFinished(result=result):
                        if mutant is None:
                            self._problems = result.problems
                        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    def _builds(self, mutant: Mutant | None) -> Path:
        return self._folder / "builds" / _slug(mutant.id if mutant is not None else "good")

    async def drop_build(self, mutant: Mutant) -> None:
        """Remove the build of a mutant of the source: a hundred of them would fill a disk."""
        await asyncio.to_thread(shutil.rmtree, self._builds(mutant), ignore_errors=True)

    async def run_citing(self, progress: MutantProgress, entries: Sequence[CaseVariant]) -> None:
        """Run the cases that are likely to detect a mutant, until one does."""
        citing = [e for e in entries if progress.mutant.concerns(e)]
        await self._run_cases(progress, citing)
        progress.unfit = [self.baseline[entry.id] for entry in citing if self.baseline[entry.id]]

    async def run_untested(self, progress: MutantProgress, entries: Sequence[CaseVariant]) -> None:
        """Repeat the cases that could not be completed."""
        untested = [entry for entry in entries if entry.id in progress.untested]
        progress.begin_repeat()
        await self._run_cases(progress, untested)

    async def run_others(self, progress: MutantProgress, entries: Sequence[CaseVariant]) -> None:
        """Run all other cases; a detection by one of these must be confirmed by a second run.

        Of 700 cases, on a machine that is busy with other mutants, one may fail by chance. This was
        observed for `alive-idle-connections`.
        """
        if progress.mutant.finder is not None:
            return
        others = [e for e in entries if not progress.mutant.concerns(e)]
        while others:
            await self._run_cases(progress, others)
            if progress.detection is None:
                return
            finder = [e for e in others if e.id == progress.detecting_case]
            others = [e for e in others if e.id != progress.detecting_case]
            progress.detection = None
            await self._run_on_new_daemon(f"{progress.mutant.id}-again", finder, progress)
            if progress.detection is not None:
                return

    async def _run_cases(self, progress: MutantProgress, entries: Sequence[CaseVariant]) -> None:
        started = time.perf_counter()
        groups, slow = quick_groups(entries), [e for e in entries if not _is_quick(e)]
        if not progress.mutant.mutation.is_of_exchanges:
            # Each group would start its own daemon, but the first is likely to be enough.
            groups, slow = groups[:1], [e for group in groups[1:] for e in group] + slow
        for number, group in enumerate((*groups, slow)):
            usable = [entry for entry in group if not self.baseline[entry.id]]
            if progress.mutant.mutation.is_of_exchanges and group is not slow:
                await self._run_on_pooled_daemon(usable, progress)
            else:
                await self._run_on_new_daemon(f"{progress.mutant.id}-{number}", usable, progress)
            if progress.detection is not None:
                break
        progress.took_s += time.perf_counter() - started

    async def _run_on_pooled_daemon(
        self, entries: Sequence[CaseVariant], progress: MutantProgress
    ) -> None:
        if not entries:
            return
        settings = entries[0].case.daemon
        try:
            async with self._slots, self._pool.lease(settings, progress.mutant.mutation) as fixture:
                for entry in entries:
                    run = await run_case(entry, fixture, brain_id(entry))
                    if progress.add(run.result) or run.hung:
                        return
        except (DaemonError, UntestableError) as error:
            progress.add(skipped_case(entries[0], Result.UNTESTABLE, str(error)))

    async def _run_on_new_daemon(
        self, label: str, entries: Sequence[CaseVariant], progress: MutantProgress
    ) -> None:
        mutant = progress.mutant
        async with aclosing(self.run(label, mutant.mutation, entries, mutant)) as cases:
            async for case in cases:
                progress.add(case)


def _failing(case: CaseResult) -> list[Check]:
    return [check for check in case.checks if check.result not in _PASSING]


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]+", "_", text)


def _is_quick(entry: CaseVariant) -> bool:
    return not (entry.is_disruptive or entry.case.concurrent)


def quick_groups(citing: Sequence[CaseVariant]) -> list[list[CaseVariant]]:
    """Group the quick cases by the daemon they need, the largest group first.

    One variant of each case comes before the others, because it likely detects what they would.
    """
    by_settings: dict[str, list[CaseVariant]] = {}
    for entry in citing:
        if _is_quick(entry):
            by_settings.setdefault(entry.case.daemon.model_dump_json(), []).append(entry)
    return [_variants_last(group) for group in sorted(by_settings.values(), key=len, reverse=True)]


def _variants_last(entries: Sequence[CaseVariant]) -> list[CaseVariant]:
    first: dict[str, CaseVariant] = {}
    for entry in entries:
        first.setdefault(entry.base, entry)
    return [*first.values(), *(entry for entry in entries if first[entry.base] is not entry)]


def _is_runnable(entry: CaseVariant, runner: SdkRunner) -> bool:
    """Whether a case works without changing settings or stopping an unmanaged daemon."""
    settings = entry.case.daemon
    return runner.restartable or not (
        settings.env or settings.upstream == "scripted" or entry.is_disruptive
    )


def applicable_cases(entries: Sequence[CaseVariant], runner: SdkRunner) -> list[CaseVariant]:
    """Return the cases that apply to this SDK and can be run on it."""
    return [e for e in entries if skip_reason(e, runner) is None and _is_runnable(e, runner)]
