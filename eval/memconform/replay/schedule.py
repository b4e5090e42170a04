"""Replays the questions against one SDK after the other, and compares what they did."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from memconform.concurrency import interruption, is_cancelled
from memconform.datasets.question import Question
from memconform.errors import DaemonError, ExitCode, MemconformError, UsageError, gravest
from memconform.records import Failure
from memconform.replay.answers import Answering, RecordSource, unmeasured
from memconform.replay.control_records import ControlRecords
from memconform.replay.events import (
    BrainIndexed,
    PartFinished,
    PartHalted,
    PartStarted,
    QuestionAnswered,
    QuestionRetrieved,
    ReplayEvent,
    ReplayFinished,
)
from memconform.replay.journal import RetrievalJournal
from memconform.replay.manifest import write_manifest
from memconform.replay.plan import Part, ReplayPlan
from memconform.replay.records import LmeQuestion, LmeResult
from memconform.replay.report_builder import ReplayResultBuilder
from memconform.replay.retrieval import PartRetrieval
from memconform.replay.sdk_agreement import compare_sdks
from memconform.stats.paired_comparison import ParityVerdict
from memconform.storage.sink import replacing


async def replay(plan: ReplayPlan, run_id: str) -> AsyncGenerator[ReplayEvent, None]:
    """Replay all parts; the last event contains the results.

    All daemons are filled together. Then one after the other is asked, and its answers are read and
    judged, while nothing else runs.

    A daemon that fails ends its part, whose other questions are not measured. A spent budget ends
    all calls, and retrieval goes on: it costs nothing. Everything that was retrieved is in the
    folder's journals and everything that was paid for in the cache of replies, from which the same
    command continues.

    Raises:
        UsageError: if the folder holds something else, or a journal of other settings.
        ResultsError: if results cannot be written.
        InterruptedRunError: if the iterating task is cancelled before the first part had its turn.
    """
    write_manifest(plan)
    works = [_PartWork(plan, part, f"{run_id}-{part.name}") for part in plan.parts]
    events: asyncio.Queue[ReplayEvent | _Mark] = asyncio.Queue()
    tasks = [asyncio.create_task(work.retrieve(events.put_nowait)) for work in works]
    results: list[LmeResult] = []
    interrupted: MemconformError | None = None
    marks: set[_Mark] = set()

    async def until(expected: set[_Mark]) -> AsyncGenerator[ReplayEvent, None]:
        while not expected <= marks:
            event = await events.get()
            if isinstance(event, _Mark):
                marks.add(event)
            else:
                yield event

    try:
        current: _PartWork | None = None
        try:
            async for event in until({_Mark(work.name, "filled") for work in works}):
                yield event
            for work, task in zip(works, tasks, strict=True):
                current = work
                yield work.begin()
                async for event in until({_Mark(work.name, "asked")}):
                    yield event
                task.result()
                async with aclosing(work.answer()) as answered:
                    async for event in answered:
                        yield event
                result, path = work.write()
                results.append(result)
                current = None
                yield PartFinished(result, path)
        except asyncio.CancelledError:
            interrupted = interruption(plan.again)
            await _end(tasks)
            if current is not None:
                current.builder.errors.append(interrupted)
                result, path = current.write()
                results.append(result)
                yield PartFinished(result, path)
        if interrupted is not None and not results:
            # No part had its turn: there is nothing to write.
            raise interrupted
        yield _finish(plan, results, interrupted)
    finally:
        await _end(tasks)


@dataclass(frozen=True, slots=True)
class _Mark:
    """The retrieval of a part has come to a point."""

    part: str
    point: Literal["filled", "asked"]


async def _end(tasks: Sequence["asyncio.Task[None]"]) -> None:
    """Cancel tasks, and wait until their daemons are stopped."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class _PartWork:
    """The work of one part: retrieval, then reading and judging."""

    def __init__(self, plan: ReplayPlan, part: Part, run_id: str) -> None:
        self._plan = plan
        self._part = part
        self.name = part.name
        self.builder = ReplayResultBuilder(plan, part)
        self._journal: RetrievalJournal | None = None
        self._retrieval: PartRetrieval | None = None
        self._incident: DaemonError | UsageError | None = None
        if part.control is None:
            folder = plan.folder / "journals" / part.name
            folder.mkdir(parents=True, exist_ok=True)
            self._journal = RetrievalJournal(folder, plan.journal_header(part))
            self._retrieval = PartRetrieval(plan, part, self._journal, run_id, self.builder.reader)
        self._resumed = 0 if self._journal is None else len(self._journal)

    def begin(self) -> PartStarted:
        """Give the part its turn."""
        if self._retrieval is not None:
            self._retrieval.turn.set()
        return PartStarted(self.name, self._resumed)

    async def retrieve(self, emit: Callable[[ReplayEvent | _Mark], None]) -> None:
        """Fill the part's daemon, if it has one, and ask it when the part's turn has come.

        Raises:
            ResultsError: if the journal cannot be written.
        """

        def passed(event: BrainIndexed | QuestionRetrieved) -> None:
            emit(event)
            if isinstance(event, BrainIndexed):
                # A start after a kill may have nothing left to ask, and no daemon to describe.
                self._write_manifest(0)
                emit(_Mark(self.name, "filled"))

        ended = "not finished"
        try:
            if self._retrieval is not None:
                await self._retrieval.run(passed)
            ended = "done"
        except (DaemonError, UsageError) as error:
            # Another version of one SDK, say, leaves the results of the others whole.
            if is_cancelled():
                raise asyncio.CancelledError from error
            ended = error.code
            self._incident = error
            self.builder.errors.append(error)
            emit(PartHalted(self.name, error))
        finally:
            emit(_Mark(self.name, "filled"))
            emit(_Mark(self.name, "asked"))
            if self._journal is not None:
                self._journal.close(ended)

    async def answer(self) -> AsyncGenerator[ReplayEvent, None]:
        """Read and judge what was retrieved."""
        records: RecordSource | None = self._journal
        if records is None:
            assert self._part.control is not None  # noqa: S101 - for mypy: it has no journal
            records = ControlRecords(self._plan, self._part.control)
        if self._retrieval is not None and self._retrieval.halted is not None:
            self.builder.errors.append(self._retrieval.halted)
            yield PartHalted(self.name, self._retrieval.halted)
        async with aclosing(self._answer(records, self._failures())) as events:
            async for event in events:
                yield event

    def _failures(self) -> dict[str, Failure]:
        """Why questions were not retrieved."""
        failures = {} if self._retrieval is None else dict(self._retrieval.failed)
        error = self._incident
        if error is not None:
            ended = Failure(code=error.code, message=error.message)
            failures |= {q.id: ended for q in self._plan.questions if q.id not in failures}
        return failures

    async def _answer(
        self, records: RecordSource, failures: Mapping[str, Failure]
    ) -> AsyncGenerator[ReplayEvent, None]:
        answering = Answering(self._plan, records, failures, self.builder.reader)
        async with aclosing(answering.run()) as questions:
            async for question in questions:
                self.builder.add(question)
                yield QuestionAnswered(self._part.name, question)
        if answering.halted is not None:
            self.builder.errors.append(answering.halted)
            yield PartHalted(self._part.name, answering.halted)

    def write(self) -> tuple[LmeResult, Path]:
        """Write the part's result and manifest, and return the result with its path."""
        plan, part = self._plan, self._part
        error = self.builder.errors[0] if self.builder.errors else None
        why = Failure(
            code=error.code if error else "not_run", message=error.message if error else ""
        )

        def missing(question: Question) -> LmeQuestion:
            return unmeasured(question, why)

        if self._journal is not None:
            self.builder.version = self._journal.version
        result = self.builder.result(missing)
        path = plan.folder / f"result-{part.name}.json"
        with replacing(path) as target:
            target.write_json(result)
        self._write_manifest(result.exit_code)
        return result, path

    @property
    def _manifest(self) -> Path:
        return self._plan.folder / f"manifest-{self.name}.json"

    def _write_manifest(self, exit_code: int) -> None:
        """Write what the daemon was, if one was started and filled."""
        if self._retrieval is None or self._retrieval.daemon.index is None:
            return
        manifest = self._retrieval.daemon.manifest(
            self._plan, self._part, self.builder.start.at, exit_code
        )
        with replacing(self._manifest) as target:
            target.write_json(manifest)


def _finish(
    plan: ReplayPlan, results: list[LmeResult], interrupted: MemconformError | None
) -> ReplayFinished:
    sdks = [r for r, part in zip(results, plan.parts, strict=False) if part.control is None]
    parity = None
    if len(sdks) > 1:
        rule = plan.session_filter_rule
        parity = compare_sdks(sdks, command=plan.command, session_filter=rule)
    codes = [ExitCode(result.exit_code) for result in results]
    if parity is None:
        # One of an earlier command would say more than this one knows.
        (plan.folder / "parity.json").unlink(missing_ok=True)
    else:
        with replacing(plan.folder / "parity.json") as target:
            target.write_json(parity)
        if parity.verdict is ParityVerdict.DRIFT:
            codes.append(ExitCode.FAILED)
    if interrupted is not None:
        codes.append(interrupted.exit_code)
    return ReplayFinished(tuple(results), parity, plan.folder, int(gravest(codes)))
