"""Runs a bench and yields its progress as events."""

import asyncio
import random
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from itertools import groupby

from memconform.bench.daemon_system import DaemonSystem
from memconform.bench.events import (
    BenchEvent,
    BenchFinished,
    HaystackIndexed,
    HaystackInvalidated,
    HaystackVerified,
    ModeHalted,
    QueryFinished,
    SystemHalted,
    SystemStarted,
)
from memconform.bench.journal import ResumeState
from memconform.bench.overhead import overhead
from memconform.bench.plan import BenchPlan
from memconform.bench.records import JournalRecord, QueryRecord
from memconform.bench.report_builder import BenchOutline, BenchReportBuilder
from memconform.bench.strategy import Strategy
from memconform.bench.system import (
    AnsweringIndex,
    Index,
    ModalSystem,
    RunningSystem,
    SearchResult,
    System,
)
from memconform.bench.tasks import Task
from memconform.client.failures import CallError
from memconform.client.recorder import Exchange, record_exchanges
from memconform.concurrency import InterruptedRunError, interruption, is_cancelled
from memconform.contract.wire import Mode
from memconform.datasets.error_text import error_message
from memconform.datasets.haystacks import Haystack
from memconform.errors import DaemonError, MemconformError, UsageError
from memconform.ingest.records import IndexInvalidated, IndexVerified
from memconform.measuring.engine import Measurement
from memconform.records import Failure, Incident
from memconform.redaction import hides
from memconform.storage.folders import RunFolder
from memconform.storage.journal import JournalFile

_VERIFY_EVERY = 100
"""Queries between two verifications of the index; a resume repeats at most this many."""


_OF_ONE_SYSTEM = ("not_restartable", "seed_outside")
"""Codes of usage errors that say nothing against other systems."""


async def execute_bench(
    plan: BenchPlan, folder: RunFolder, resume: ResumeState
) -> AsyncGenerator[BenchEvent, None]:
    """Run every query against every system; the last event contains the report.

    If a system or one of its modes fails, or the iterating task is cancelled, the report's rows
    say so; rows of other systems and modes are measured.

    Raises:
        UsageError: if the benchmark turns out to be unusable; the run's folder keeps the journal.
        ResultsError: if results cannot be written.
    """
    journal = JournalFile(folder.journal, plan.journal_header(folder.path.name))
    builder = BenchReportBuilder(BenchOutline.of(plan, folder.path.name))
    for record in resume.records():
        builder.add(record)
        builder.adopted = True
        journal.append(record)
    halted: dict[str, MemconformError] = {}
    ended = "not finished"
    try:
        if any(isinstance(system, DaemonSystem) for system in plan.systems):
            builder.overhead = await overhead()
        for system in plan.systems:
            async with aclosing(_measure(plan, system, resume, builder, halted)) as events:
                async for event in events:
                    if (new := _record(event)) is not None:
                        journal.append(new)
                        builder.add(new)
                    yield event
            if (error := halted.get(system.name)) is not None:
                builder.halt(system.name, Incident.of(error))
                yield SystemHalted(system.name, error)
            ended = error.code if error else "done"
            if isinstance(error, InterruptedRunError):
                break
    finally:
        journal.close(ended=ended)
    report = await asyncio.to_thread(builder.write, folder)
    yield BenchFinished(report, folder.result)


def _record(event: BenchEvent) -> JournalRecord | None:
    match event:
        case HaystackIndexed() | HaystackVerified() | HaystackInvalidated() | QueryFinished():
            return event.record
    return None


async def _measure(
    plan: BenchPlan,
    system: System,
    resume: ResumeState,
    builder: BenchReportBuilder,
    halted: dict[str, MemconformError],
) -> AsyncGenerator[BenchEvent, None]:
    """Measure one system; an error that ends it early is added to `halted`."""
    total = len(plan.planner.query_ids) * len(system.strategies)
    resumed = sum(name == system.name for name, *_ in resume.queries)
    yield SystemStarted(system.name, total - resumed)
    session: RunningSystem | None = None
    try:
        async with (
            system.open() as session,
            aclosing(_run_queries(plan, system, session, resume)) as events,
        ):
            async for event in events:
                yield event
    except (DaemonError, UsageError) as error:
        if isinstance(error, UsageError) and error.code not in _OF_ONE_SYSTEM:
            raise
        # An error during the shutdown of an interrupted bench replaces the cancellation.
        halted[system.name] = interruption() if is_cancelled() else error
    except asyncio.CancelledError:
        halted[system.name] = interruption()
    finally:
        if session is not None:
            builder.systems[system.name] = session.record()
            for mode, cause in _lost(session).items():
                builder.lose(system.name, _labels(system, mode), Incident.of(cause))


def _lost(session: RunningSystem) -> Mapping[Mode, DaemonError]:
    """The modes of a system in which nothing more can be measured."""
    return session.lost if isinstance(session, ModalSystem) else {}


def _labels(system: System, mode: Mode | None) -> list[str]:
    """The strategies that search in a mode."""
    return [strategy.label for strategy in system.strategies if strategy.mode is mode]


@dataclass(frozen=True, slots=True)
class _SystemIndex:
    """An index of a system, and its name."""

    system: System
    haystack: str
    index: Index


async def _run_queries(
    plan: BenchPlan, system: System, session: RunningSystem, resume: ResumeState
) -> AsyncGenerator[BenchEvent, None]:
    reported: set[Mode] = set()
    for name, haystacks, tasks in _batches(plan):
        pending = [
            (
                strategy,
                [task for task in tasks if _key(system, strategy, task) not in resume.queries],
            )
            for strategy in system.strategies
        ]
        if not any(tasks for _, tasks in pending):
            continue
        async with session.build_index(haystacks) as index:
            yield HaystackIndexed(index.record.model_copy(update={"haystack": name}))
            # One strategy after another: a query repeated at once would be answered from caches.
            for mode, strategies in groupby(pending, lambda each: each[0].mode):
                group = [each for each in strategies if each[1]]
                if mode in _lost(session) or not group:
                    continue
                indexed = _SystemIndex(system, name, index)
                try:
                    async with aclosing(_run_mode(plan, indexed, mode, group)) as events:
                        async for event in events:
                            yield event
                except DaemonError:
                    if mode not in _lost(session) or is_cancelled():
                        raise
            lost = _lost(session)
            if all(strategy.mode in lost for strategy in system.strategies):
                raise [*lost.values()][-1]
            for mode in lost.keys() - reported:
                yield ModeHalted(system.name, mode, lost[mode])
            reported |= lost.keys()


async def _run_mode(
    plan: BenchPlan,
    indexed: _SystemIndex,
    mode: Mode | None,
    pending: Sequence[tuple[Strategy, list[Task]]],
) -> AsyncGenerator[BenchEvent, None]:
    """Ask what is pending in one mode; raises DaemonError if that cannot be measured."""
    system = indexed.system

    async def ask(trial: tuple[Strategy, Task]) -> QueryRecord:
        return await _run_query(plan, system.name, indexed.index, *trial)

    measurement = Measurement(
        ask=ask,
        verify=partial(indexed.index.verify, mode),
        concurrency=plan.concurrency,
        verify_every=_VERIFY_EVERY,
        scope=IndexVerified(
            system=system.name, haystack=indexed.haystack, strategies=_labels(system, mode)
        ),
    )
    batches = (((strategy, task) for task in _shuffled(plan, tasks)) for strategy, tasks in pending)
    async with aclosing(measurement.run(batches)) as measured:
        async for each in measured:
            match each:
                case QueryRecord():
                    yield QueryFinished(each)
                case IndexVerified():
                    yield HaystackVerified(each)
                case IndexInvalidated():
                    yield HaystackInvalidated(each)


def _key(system: System, strategy: Strategy, task: Task) -> tuple[str, str, str]:
    return system.name, strategy.label, task.query.id


def _batches(plan: BenchPlan) -> Iterator[tuple[str, Iterable[Haystack], list[Task]]]:
    """The name, the haystacks and the tasks of each index."""
    if plan.settings.index == "shared":
        all_tasks = [task for haystack in plan.read() for task in plan.planner.tasks(haystack)]
        yield "", plan.read(), all_tasks
        return
    yield from filter(lambda batch: batch[2], map(partial(_batch, plan), plan.read()))


def _batch(plan: BenchPlan, haystack: Haystack) -> tuple[str, Iterable[Haystack], list[Task]]:
    """The index of one haystack, whose texts are dropped once they are ingested."""
    return haystack.id, iter((haystack,)), plan.planner.tasks(haystack)


def _shuffled(plan: BenchPlan, tasks: list[Task]) -> list[Task]:
    if plan.shuffle is not None:
        random.Random(plan.shuffle).shuffle(tasks)  # noqa: S311 - nothing secret
    return tasks


async def _run_query(
    plan: BenchPlan, system: str, index: Index, strategy: Strategy, task: Task
) -> QueryRecord:
    query = task.query
    record = QueryRecord(
        system=system,
        strategy=strategy.label,
        haystack=task.haystack,
        query=query.id,
        position=plan.positions[query.id],
        cluster=query.cluster,
        category=query.category,
        views={},
        searched=None if task.searched is None else len(task.searched),
        ranking=[],
    )
    with record_exchanges() as exchanges:
        try:
            result = await index.search(task, strategy)
        except CallError as error:
            return record.model_copy(update={"error": _failure(error, exchanges)})
    answered: dict[str, object] = {}
    if plan.answers and isinstance(index, AnsweringIndex):
        answered = await _answer(index, strategy, task, result)
    return record.model_copy(
        update={
            **answered,
            "views": task.views(result.entries or result.ranking),
            "ranking": list(result.ranking),
            **dict(result.observed),
            "memories": list(result.memories) if task.wants_memories else None,
            "redacted": any(map(hides, result.memories)),
        }
    )


async def _answer(
    index: AnsweringIndex, strategy: Strategy, task: Task, found: SearchResult
) -> dict[str, object]:
    """The fields of a record that say what a system's own reader answered."""
    with record_exchanges() as exchanges:
        try:
            own = await index.answer(task, strategy, found)
        except CallError as error:
            return {"answer_error": _failure(error, exchanges)}
        except DaemonError as error:
            # The next search meets it, too; what this one found is kept.
            return {"answer_error": Failure(code=error.code, message=error.message)}
    if hides(own.text):
        masked = "it contains a secret of the environment, which results mask: it cannot be judged"
        return {"answer_error": Failure(code="redacted", message=masked)}
    if (message := error_message(task.query, own.text)) is not None:
        # Later verbs, and other programs, read what is stored as an answer.
        return {"answer_error": Failure(code="error_text", message=message)}
    return {"answer": own.text, "answer_ranking": list(own.ranking)}


def _failure(error: CallError, exchanges: Sequence[Exchange]) -> Failure:
    curl = exchanges[-1].curl() if exchanges else ""
    return Failure(code=error.code, message=error.message, body=error.body, curl=curl)
