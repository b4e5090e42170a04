"""Puts the cases to each mutant until one of them finds it."""

import asyncio
import re
import shutil
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

from memconform.conformance.catalog import CaseVariant
from memconform.conformance.fixture import UntestableError
from memconform.conformance.mutation.daemon_pool import DaemonPool
from memconform.conformance.mutation.mutant import Mutant
from memconform.conformance.mutation.results import FalseAlarm, Fate, MutantResult, result_of
from memconform.conformance.results import CaseResult, Check, Result
from memconform.conformance.running import run_case, skip_reason, skipped_case
from memconform.conformance.suite import CaseFinished, MakeRunner, SdkFinished, brain_id, conform
from memconform.daemons.runner import SdkRunner
from memconform.errors import DaemonError
from memconform.fakes.mutant import mutant_of
from memconform.fakes.mutation import Mutation
from memconform.printing.logs import Logger

_log = Logger()

_GOOD = (Result.PASS, Result.NOT_APPLICABLE)

SOURCE_SDK = "py"
"""The SDK whose source the table has mutants of."""


@dataclass(frozen=True, slots=True)
class Begun:
    """Cases that are to be tried on the daemon in which nothing is broken."""

    cases: int


@dataclass(frozen=True, slots=True)
class CaseTried:
    """One of them."""


@dataclass(frozen=True, slots=True)
class MutantFinished:
    result: MutantResult


@dataclass(frozen=True, slots=True)
class Scored:
    alarms: tuple[FalseAlarm, ...]
    cases: int
    """That were tried where nothing is broken."""


Event = Begun | CaseTried | MutantFinished | Scored


def possible(mutant: Mutant, runner: SdkRunner, entries: Sequence[CaseVariant]) -> bool:
    """Whether this SDK can be made into that mutant, and claims what it breaks.

    `entries` are the cases that are for it: one of them at least is about the mutant's rule.
    """
    if mutant.profile is not None and mutant.profile not in runner.profiles:
        return False
    if not any(mutant.concerns(entry) for entry in entries):
        return False
    if mutant.mutation.source:
        return runner.restartable and runner.name == SOURCE_SDK
    return runner.restartable or mutant.mutation.is_of_exchanges


async def score(
    make_runner: MakeRunner,
    mutants: Sequence[Mutant],
    entries: Sequence[CaseVariant],
    *,
    folder: Path,
    daemons: int,
) -> AsyncGenerator[Event, None]:
    """The cases on the good daemon, then those that pass there on each mutant.

    At most `daemons` daemons run at once. `folder` holds their state while they do.
    """
    if not make_runner().restartable:
        # There is one, and two mutants at once would have the same brains.
        daemons = 1
    kept = DaemonPool(make_runner, folder, daemons)
    crew = _MutantScorer(make_runner, folder, asyncio.Semaphore(daemons), kept)
    citing = [entry for entry in entries if any(mutant.concerns(entry) for mutant in mutants)]
    yield Begun(len(citing))
    async with aclosing(crew.good(citing)) as cases:
        async for _ in cases:
            yield CaseTried()

    all_seen = [MutantProgress(mutant) for mutant in mutants]
    try:
        async with aclosing(_side_by_side(daemons, crew.by_its_rule, all_seen, entries)) as ended:
            async for seen in ended:
                if seen.found is not None:
                    yield MutantFinished(seen.result())
        # The others at last, for one that lives takes as long as hundreds that do not.
        living = [seen for seen in all_seen if seen.found is None]
        async with aclosing(_side_by_side(daemons, crew.by_all_others, living, entries)) as ended:
            async for seen in ended:
                yield MutantFinished(seen.result())
    finally:
        await kept.close()
    alarms = sorted(crew.alarms, key=lambda alarm: alarm.check)
    yield Scored(tuple(alarms), len(crew.tried))


async def _side_by_side(
    many: int,
    put: Callable[["MutantProgress", Sequence[CaseVariant]], Awaitable[None]],
    all_seen: Sequence["MutantProgress"],
    entries: Sequence[CaseVariant],
) -> AsyncGenerator["MutantProgress", None]:
    """Each as it ends, so many at once."""
    waiting = asyncio.Semaphore(many)

    async def one(seen: "MutantProgress") -> "MutantProgress":
        async with waiting:
            await put(seen, entries)
        return seen

    tasks = [asyncio.create_task(one(seen)) for seen in all_seen]
    try:
        for finished in asyncio.as_completed(tasks):
            yield await finished
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class MutantProgress:
    """What the cases have come to that were put to a mutant."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant
        self.found: Check | None = None
        self.took_s = 0.0
        self.unfit: list[str] = []
        """Cases that cite its rule and fail, or cannot be made, where nothing is broken: why."""
        self._cases = 0
        self._unmade: list[str] = []

    @property
    def found_by(self) -> str:
        """The case that has found it."""
        return self.found.id.partition("#")[0] if self.found is not None else ""

    def take(self, case: CaseResult) -> bool:
        """Whether the mutant is found now."""
        self._cases += 1
        self.found = self.found or finding(self.mutant, case)
        self._unmade += [
            f"{check.id}: {' '.join(check.got)}"
            for check in case.checks
            if check.result in (Result.UNTESTABLE, Result.ERROR)
        ]
        return self.found is not None

    def result(self) -> MutantResult:
        if self.found is not None:
            fate, by, got = Fate.KILLED, self.found.id, self.found.got
        else:
            by, got = "", [*self._unmade, *self.unfit]
            fate = Fate.UNTESTABLE if got or not self._cases else Fate.SURVIVED
        _log.info("mutant", id=self.mutant.id, fate=fate.value, by=by, took_s=self.took_s)
        return result_of(self.mutant, fate, by=by, got=got, cases=self._cases, took_s=self.took_s)


class _MutantScorer:
    def __init__(
        self, make_runner: MakeRunner, folder: Path, slots: asyncio.Semaphore, kept: DaemonPool
    ) -> None:
        self._make_runner = make_runner
        self._folder = folder
        self._slots = slots
        self._session = kept.session
        self._kept = kept
        self._ours = make_runner().restartable
        """Of a daemon that somebody else has started some things cannot be tested."""
        self._trying = asyncio.Lock()
        self.alarms: list[FalseAlarm] = []
        self.tried: dict[str, str] = {}
        """Of each case that was tried where nothing is broken, why it fails there, or ""."""

    async def good(self, entries: Sequence[CaseVariant]) -> AsyncGenerator[CaseResult, None]:
        """Try cases where nothing is broken, those that were not yet."""
        async with self._trying:
            new = [entry for entry in entries if entry.id not in self.tried]
            if not new:
                return
            async with aclosing(self.run("good", Mutation(), new)) as cases:
                async for case in cases:
                    wrong = [check for check in case.checks if check.result not in _GOOD]
                    self.tried[case.case] = "".join(
                        f"{c.id} does not pass where nothing is broken: {' '.join(c.got)}"
                        for c in wrong[:1]
                    )
                    self.alarms += [
                        FalseAlarm(check=c.id, result=c.result.value, got=c.got[:5])
                        for c in wrong
                        if self._ours or c.result is not Result.UNTESTABLE
                    ]
                    yield case
            for entry in new:
                # Of a daemon that was lost some cases come to nothing at all.
                lost = f"{entry.id} could not be tried where nothing is broken"
                self.tried.setdefault(entry.id, lost)

    async def run(
        self,
        label: str,
        mutation: Mutation,
        entries: Sequence[CaseVariant],
        mutant: Mutant | None = None,
    ) -> AsyncGenerator[CaseResult, None]:
        """What cases come to; nothing new begins once one of them has found `mutant`."""
        folder = self._folder / re.sub(r"[^A-Za-z0-9.-]+", "_", label)
        events = conform(
            "mutant",
            lambda: mutant_of(self._make_runner(), mutation),
            entries,
            known=(),
            folder=folder,
            run_id=f"{self._session}-{label}",
            slots=self._slots,
            stop=lambda case: mutant is not None and finding(mutant, case) is not None,
        )
        async with aclosing(events):
            async for event in events:
                match event:
                    case CaseFinished(ran=ran):
                        yield ran.result
                    case SdkFinished(result=result):
                        if mutant is None:
                            self.alarms += [
                                FalseAlarm(check="", result=Result.UNTESTABLE.value, got=[problem])
                                for problem in result.problems
                            ]
                        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    async def by_its_rule(self, seen: "MutantProgress", entries: Sequence[CaseVariant]) -> None:
        """Put the cases to a mutant that are likely to find it, until one does."""
        citing = [e for e in entries if seen.mutant.concerns(e)]
        await self._put(seen, citing)
        seen.unfit = [self.tried[entry.id] for entry in citing if self.tried[entry.id]]

    async def by_all_others(self, seen: "MutantProgress", entries: Sequence[CaseVariant]) -> None:
        """Put all other cases to it. What one of so many finds must be found again.

        Of 700 cases on a machine that is busy with other mutants one may fail by chance; observed
        of `alive-idle-connections`.
        """
        if seen.mutant.finder is not None:
            return
        others = [e for e in entries if not seen.mutant.concerns(e)]
        while others:
            await self._put(seen, others)
            if seen.found is None:
                return
            finder = [e for e in others if e.id == seen.found_by]
            others = [e for e in others if e.id != seen.found_by]
            seen.found = None
            await self._on_its_own(f"{seen.mutant.id}-again", finder, seen)
            if seen.found is not None:
                return

    async def _put(self, seen: "MutantProgress", entries: Sequence[CaseVariant]) -> None:
        started = time.perf_counter()
        groups, slow = quick_groups(entries), [e for e in entries if not _is_quick(e)]
        if not seen.mutant.mutation.is_of_exchanges:
            # Each group of its own would start a daemon, where the first is likely to do.
            groups, slow = groups[:1], [e for group in groups[1:] for e in group] + slow
        for number, group in enumerate((*groups, slow)):
            fit = await self._fit(group)
            if seen.mutant.mutation.is_of_exchanges and group is not slow:
                await self._on_kept(fit, seen)
            else:
                await self._on_its_own(f"{seen.mutant.id}-{number}", fit, seen)
            if seen.found is not None:
                break
        seen.took_s += time.perf_counter() - started

    async def _fit(self, entries: Sequence[CaseVariant]) -> list[CaseVariant]:
        # Only the others of a partial selection are not tried yet.
        async with aclosing(self.good(entries)) as tried:
            async for _ in tried:
                pass
        return [entry for entry in entries if not self.tried[entry.id]]

    async def _on_kept(self, entries: Sequence[CaseVariant], seen: "MutantProgress") -> None:
        if not entries:
            return
        serving = entries[0].case.daemon
        try:
            async with self._slots, self._kept.lease(serving, seen.mutant.mutation) as fixture:
                for entry in entries:
                    ran = await run_case(entry, fixture, brain_id(entry))
                    if seen.take(ran.result) or ran.hung:
                        return
        except (DaemonError, UntestableError) as error:
            seen.take(skipped_case(entries[0], Result.UNTESTABLE, str(error)))

    async def _on_its_own(
        self, label: str, entries: Sequence[CaseVariant], seen: "MutantProgress"
    ) -> None:
        mutant = seen.mutant
        async with aclosing(self.run(label, mutant.mutation, entries, mutant)) as cases:
            async for case in cases:
                seen.take(case)


def finding(mutant: Mutant, case: CaseResult) -> Check | None:
    """The check that has found a mutant: one that fails, or only warns where it breaks a SHOULD.

    Of a mutant that a certain check must find no other will do."""
    red = (Result.FAIL,) if mutant.level == "must" else (Result.FAIL, Result.WARN)
    checks = (check for check in case.checks if mutant.check in ("", check.id))
    return next((check for check in checks if check.result in red), None)


def _is_quick(entry: CaseVariant) -> bool:
    return not (entry.is_disruptive or entry.case.concurrent)


def quick_groups(citing: Sequence[CaseVariant]) -> list[list[CaseVariant]]:
    """The quick ones of these cases, a list for each kind of daemon, the longest list first.

    One variant of each case comes before the others, for it is likely to find what they would.
    """
    by_serving: dict[str, list[CaseVariant]] = {}
    for entry in citing:
        if _is_quick(entry):
            by_serving.setdefault(entry.case.daemon.model_dump_json(), []).append(entry)
    return [_variants_last(group) for group in sorted(by_serving.values(), key=len, reverse=True)]


def _variants_last(entries: Sequence[CaseVariant]) -> list[CaseVariant]:
    first: dict[str, CaseVariant] = {}
    for entry in entries:
        first.setdefault(entry.base, entry)
    return [*first.values(), *(entry for entry in entries if first[entry.base] is not entry)]


def _can_be_put(entry: CaseVariant, runner: SdkRunner) -> bool:
    """A daemon that somebody else has started gets no other settings, and is not ended."""
    serving = entry.case.daemon
    return runner.restartable or not (
        serving.env or serving.upstream == "scripted" or entry.is_disruptive
    )


def selectable(entries: Sequence[CaseVariant], runner: SdkRunner) -> list[CaseVariant]:
    """The cases that are for this SDK, and can be put to it."""
    return [e for e in entries if skip_reason(e, runner) is None and _can_be_put(e, runner)]
