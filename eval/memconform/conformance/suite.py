"""Runs all cases on one SDK, repeats those that time out, and collects the results."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from memconform.concurrency import Slots
from memconform.conformance.applicability import (
    embedder_skip_reason,
    reader_skip_reason,
    skip_reason,
)
from memconform.conformance.case_runner import CaseRun, skipped_case
from memconform.conformance.catalog import CaseVariant
from memconform.conformance.job_runner import JobRunner, MakeRunner
from memconform.conformance.kept_daemons import KeptDaemons
from memconform.conformance.known_failures import KnownFailure, mark_expected, mark_stale
from memconform.conformance.results import CaseResult, Result, SdkResult


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


async def conform(
    name: str,
    make_runner: MakeRunner,
    entries: Sequence[CaseVariant],
    *,
    known: Sequence[KnownFailure],
    folder: Path,
    run_id: str,
    slots: Slots,
    has_controls: bool = True,
    repeats: bool = True,
    stop: Callable[[CaseResult], bool] = lambda _: False,
    keep: KeptDaemons | None = None,
) -> AsyncGenerator[Event, None]:
    """Run `entries` on an SDK and yield events; the last one has all results.

    Cases that measured nothing because of a timeout are repeated alone, and reported then: of
    twenty daemons that started at once on two cores, the last was ready after 39 s.

    Args:
        name: Name of the SDK in events and results.
        make_runner: Creates a runner for each daemon.
        entries: The cases, in the order in which results are reported.
        known: Known failures.
        folder: Holds the state and logs of daemons.
        run_id: Prefix of the daemons' run ids.
        slots: Bounds how many daemons run at once.
        has_controls: Whether rejections are compared with valid requests to the same route.
        repeats: Whether cases that time out are repeated.
        stop: No more cases are started once it returns True for a result.
        keep: Takes over daemons that stay up; None stops all.
    """
    started = time.perf_counter()
    runner = make_runner()
    results: dict[str, CaseResult] = {}
    repeated: list[str] = []
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
    make_job_runner = partial(
        JobRunner,
        name=name,
        make_runner=make_runner,
        folder=folder,
        run_id=run_id,
        slots=slots,
        has_controls=has_controls,
        stopping=stopping,
        keep=keep,
    )
    first, second = make_job_runner(), make_job_runner(is_repeat=True) if repeats else None
    async with aclosing(_run_and_repeat(first, second, applicable)) as runs:
        async for run in runs:
            case = mark_expected(run.result, name, known)
            results[case.case] = case
            if run.repeated:
                repeated.append(case.case)
            if stop(case):
                stopping.set()
            yield CaseFinished(name, replace(run, result=case))
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
            problems=first.problems + (second.problems if second is not None else []),
            repeated=[entry.id for entry in entries if entry.id in repeated],
            readers=None if runner.readers is None else [r.value for r in runner.readers],
            unclaimed_reader_cases=of_other_readers,
            embedders=None if runner.embedders is None else [e.value for e in runner.embedders],
            unclaimed_embedder_cases=of_other_embedders,
            took_s=round(time.perf_counter() - started, 3),
        )
    )


async def _run_and_repeat(
    first: JobRunner, second: JobRunner | None, entries: Sequence[CaseVariant]
) -> AsyncGenerator[CaseRun, None]:
    """Run all cases, and with `second` those again that timed out; yield each case once."""
    timed_out: dict[str, CaseRun] = {}
    async with aclosing(first.run(entries)) as runs:
        async for run in runs:
            if second is not None and run.timed_out:
                timed_out[run.result.case] = run
            else:
                yield run
    if second is None:
        return
    async with aclosing(second.run([e for e in entries if e.id in timed_out])) as runs:
        async for run in runs:
            del timed_out[run.result.case]
            yield replace(run, repeated=True)
    for run in timed_out.values():
        yield run
