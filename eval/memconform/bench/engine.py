"""Carries out a bench and tells what happens, as events."""

import asyncio
import random
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing
from functools import partial

from memconform.bench.daemon_system import DaemonSystem
from memconform.bench.events import (
    BenchEvent,
    BenchFinished,
    HaystackFilled,
    HaystackProved,
    HaystackSpoilt,
    QueryPut,
    SystemHalted,
    SystemStarted,
)
from memconform.bench.journal import ResumeState
from memconform.bench.overhead import overhead
from memconform.bench.plan import BenchPlan
from memconform.bench.records import Measured, QueryRecord
from memconform.bench.report_builder import BenchReportBuilder
from memconform.bench.strategy import Strategy
from memconform.bench.system import Index, Session, System
from memconform.bench.tasks import Task
from memconform.client.failures import CallError
from memconform.client.recorder import record_exchanges
from memconform.datasets.haystacks import Haystack
from memconform.errors import DaemonError
from memconform.ingest.records import IndexInvalidated, IndexVerified
from memconform.ingest.verification import IndexChangedError
from memconform.records import Failure
from memconform.runs.loop import InterruptedRunError, interruption, is_cancelled, work_through
from memconform.storage.append_only import AppendOnly
from memconform.storage.folders import RunFolder

_PROOF_EVERY = 100
"""Queries between two looks at whether the index is still whole: so many a resume may put again."""


async def execute_bench(
    plan: BenchPlan, folder: RunFolder, kept: ResumeState
) -> AsyncGenerator[BenchEvent, None]:
    """Put every query to every system, and end with the report.

    A system that fails ends in rows that say so; so does a cancellation of the task that iterates.

    Raises:
        UsageError: where the benchmark cannot be used after all; its folder keeps the journal.
        ResultsError: where results cannot be written.
    """
    journal = AppendOnly(folder.journal)
    journal.append(plan.journal_header(folder.path.name))
    outcome = BenchReportBuilder(plan, folder.path.name)
    for adopted in kept.records():
        outcome.add(adopted)
        outcome.adopted = True
        journal.append(adopted)
    ended = "not finished"
    try:
        if any(isinstance(system, DaemonSystem) for system in plan.systems):
            outcome.overhead = await overhead()
        for system in plan.systems:
            async with aclosing(_measured(plan, system, kept, outcome)) as events:
                async for event in events:
                    if (record := _record(event)) is not None:
                        journal.append(record)
                        outcome.add(record)
                    yield event
            if (incident := outcome.incident_of(system.name)) is not None:
                yield SystemHalted(system.name, incident)
            ended = incident.code if incident else "done"
            if isinstance(incident, InterruptedRunError):
                break
    finally:
        journal.close({"stage": "footer", "ended": ended})
    report = await asyncio.to_thread(outcome.write, folder)
    yield BenchFinished(report, folder.result)


def _record(event: BenchEvent) -> Measured | None:
    match event:
        case HaystackFilled(filled=record):
            return record
        case HaystackProved(proved=record):
            return record
        case HaystackSpoilt(spoilt=record):
            return record
        case QueryPut(record=record):
            return record
    return None


async def _measured(
    plan: BenchPlan, system: System, kept: ResumeState, outcome: BenchReportBuilder
) -> AsyncGenerator[BenchEvent, None]:
    """One system; what ends it early is left with `outcome`."""
    put = len(plan.tasking.chosen) * len(system.strategies)
    yield SystemStarted(system.name, put - sum(name == system.name for name, *_ in kept.queries))
    session: Session | None = None
    try:
        async with (
            system.open() as session,
            aclosing(_asked(plan, system, session, kept)) as events,
        ):
            async for event in events:
                yield event
    except DaemonError as error:
        # Raised while an interrupted bench was ended, it takes the place of the cancellation.
        outcome.halt(system.name, interruption() if is_cancelled() else error)
    except asyncio.CancelledError:
        outcome.halt(system.name, interruption())
    finally:
        if session is not None:
            outcome.systems[system.name] = session.record()


async def _asked(
    plan: BenchPlan, system: System, session: Session, kept: ResumeState
) -> AsyncGenerator[BenchEvent, None]:
    for name, haystacks, tasks in _batches(plan):
        open_work = [
            (strategy, [task for task in tasks if _key(system, strategy, task) not in kept.queries])
            for strategy in system.strategies
        ]
        if not any(left for _, left in open_work):
            continue
        async with session.fill(haystacks) as index:
            yield HaystackFilled(index.filled.model_copy(update={"haystack": name}))
            # One strategy after another: a query twice in a row would find itself in caches.
            put = 0
            for strategy, left in open_work:
                put_one = partial(_put, system.name, index, strategy)
                tasks_left = iter(_shuffled(plan, left))
                work = work_through(tasks_left, put_one, plan.concurrency)
                async with aclosing(work) as records:
                    async for record in records:
                        yield QueryPut(record)
                        put += 1
                        if put % _PROOF_EVERY == 0:
                            async for event in _proof(system.name, name, index):
                                yield event
            async for event in _proof(system.name, name, index):
                yield event


async def _proof(system: str, haystack: str, index: Index) -> AsyncGenerator[BenchEvent, None]:
    """Whether what was found so far counts; raises DaemonError where it does not."""
    try:
        await index.prove()
    except IndexChangedError as error:
        why = Failure(code=error.code, message=error.message)
        yield HaystackSpoilt(IndexInvalidated(system=system, haystack=haystack, error=why))
        raise
    yield HaystackProved(IndexVerified(system=system, haystack=haystack))


def _key(system: System, strategy: Strategy, task: Task) -> tuple[str, str, str]:
    return system.name, strategy.label, task.query.id


def _batches(plan: BenchPlan) -> Iterator[tuple[str, Iterable[Haystack], list[Task]]]:
    """What is filled into one index, under which name, and what is asked of it."""
    if plan.settings.index == "shared":
        tasks = [task for haystack in plan.read() for task in plan.tasking.of(haystack)]
        yield "", plan.read(), tasks
        return
    for haystack in plan.read():
        if own := plan.tasking.of(haystack):
            yield haystack.id, (haystack,), own


def _shuffled(plan: BenchPlan, tasks: list[Task]) -> list[Task]:
    if plan.shuffle is not None:
        random.Random(plan.shuffle).shuffle(tasks)  # noqa: S311 - nothing secret
    return tasks


async def _put(system: str, index: Index, strategy: Strategy, task: Task) -> QueryRecord:
    query = task.query
    record = QueryRecord(
        system=system,
        strategy=strategy.label,
        haystack=task.haystack,
        query=query.id,
        category=query.category,
        views={},
        ranking=[],
        latency_ms=None,
        search_ms=None,
    )
    with record_exchanges() as exchanges:
        try:
            found = await index.search(task, strategy)
        except CallError as error:
            curl = exchanges[-1].curl() if exchanges else ""
            failure = Failure(code=error.code, message=error.message, body=error.body, curl=curl)
            return record.model_copy(update={"error": failure})
    return record.model_copy(
        update={
            "views": task.views(found.ranking),
            "ranking": list(found.ranking),
            "latency_ms": found.latency_ms,
            "search_ms": found.search_ms,
        }
    )
