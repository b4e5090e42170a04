"""Replays the questions against one SDK after the other, and compares what they did."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from pathlib import Path

from memconform.datasets.model import Question
from memconform.errors import DaemonError, ExitCode, MemconformError, gravest
from memconform.parity.records import ParityVerdict
from memconform.records import Failure
from memconform.replay.answering import Answering, RecordSource, unmeasured
from memconform.replay.comparison import compare_sdks
from memconform.replay.controls import ControlRecords
from memconform.replay.events import (
    PartFinished,
    PartHalted,
    PartStarted,
    QuestionAnswered,
    ReplayEvent,
    ReplayFinished,
)
from memconform.replay.journal import RetrievalJournal
from memconform.replay.manifest import write_manifest
from memconform.replay.plan import Part, ReplayPlan
from memconform.replay.records import LmeQuestion, LmeResult
from memconform.replay.report_builder import ResultBuilder
from memconform.replay.retrieval import PartRetrieval
from memconform.runs.loop import interruption, is_cancelled
from memconform.storage.writing import replacing


async def replay(plan: ReplayPlan, run_id: str) -> AsyncGenerator[ReplayEvent, None]:
    """Replay all parts, one after the other; the last event contains the results.

    A daemon that fails ends its part, whose other questions are not measured. A spent budget ends
    all calls, and retrieval goes on: it costs nothing. Everything that was retrieved is in the
    folder's journals and everything that was paid for in the cache of replies, from which the same
    command continues.

    Raises:
        UsageError: if the folder holds something else, or a journal of other settings.
        ResultsError: if results cannot be written.
    """
    results: list[LmeResult] = []
    interrupted: MemconformError | None = None
    write_manifest(plan)
    for part in plan.parts:
        work = _PartWork(plan, part, f"{run_id}-{part.name}")
        try:
            async with aclosing(work.run()) as events:
                async for event in events:
                    yield event
        except asyncio.CancelledError:
            interrupted = interruption()
            work.builder.errors.append(interrupted)
        result, path = work.write()
        results.append(result)
        yield PartFinished(result, path)
        if interrupted is not None:
            break
    yield _finish(plan, results, interrupted)


class _PartWork:
    """The work of one part: retrieval, then reading and judging."""

    def __init__(self, plan: ReplayPlan, part: Part, run_id: str) -> None:
        self._plan = plan
        self._part = part
        self.builder = ResultBuilder(plan, part)
        self._retrieval: PartRetrieval | None = None
        self._run_id = run_id
        self._incident: DaemonError | None = None

    async def run(self) -> AsyncGenerator[ReplayEvent, None]:
        plan, part = self._plan, self._part
        if part.control is not None:
            yield PartStarted(part.name, 0)
            records = ControlRecords(plan, part.control)
            async with aclosing(self._answer(records, {})) as events:
                async for event in events:
                    yield event
            return
        folder = plan.folder / "journals" / part.name
        folder.mkdir(parents=True, exist_ok=True)
        journal = RetrievalJournal(folder, plan.journal_header(part))
        yield PartStarted(part.name, len(journal))
        retrieval = self._retrieval = PartRetrieval(
            plan, part, journal, self._run_id, self.builder.reader
        )
        ended = "not finished"
        try:
            async with aclosing(retrieval.run()) as asked:
                async for event in asked:
                    yield event
            ended = "done"
        except DaemonError as error:
            if is_cancelled():
                raise asyncio.CancelledError from error
            ended = error.code
            self._incident = error
            self.builder.errors.append(error)
            yield PartHalted(part.name, error)
        finally:
            journal.close(ended)
        if retrieval.halted is not None:
            self.builder.errors.append(retrieval.halted)
            yield PartHalted(part.name, retrieval.halted)
        async with aclosing(self._answer(journal, self._failures())) as events:
            async for event in events:
                yield event

    def _failures(self) -> dict[str, Failure]:
        """Why questions were not retrieved."""
        assert self._retrieval is not None  # noqa: S101 - for mypy: it has run
        failures = dict(self._retrieval.failed)
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

        if self._retrieval is not None:
            self.builder.version = self._retrieval.daemon.version
        result = self.builder.result(missing)
        path = plan.folder / f"result-{part.name}.json"
        with replacing(path) as target:
            target.write_json(result)
        if self._retrieval is not None and self._retrieval.daemon.index is not None:
            manifest = self._retrieval.daemon.manifest(
                plan, part, self.builder.started, result.exit_code
            )
            with replacing(plan.folder / f"manifest-{part.name}.json") as target:
                target.write_json(manifest)
        return result, path


def _finish(
    plan: ReplayPlan, results: list[LmeResult], interrupted: MemconformError | None
) -> ReplayFinished:
    sdks = [r for r, part in zip(results, plan.parts, strict=False) if part.control is None]
    parity = compare_sdks(plan, sdks) if len(sdks) > 1 else None
    codes = [ExitCode(result.exit_code) for result in results]
    if parity is not None:
        with replacing(plan.folder / "parity.json") as target:
            target.write_json(parity)
        if parity.verdict is ParityVerdict.DRIFT:
            codes.append(ExitCode.FAILED)
    if interrupted is not None:
        codes.append(interrupted.exit_code)
    return ReplayFinished(tuple(results), parity, plan.folder, int(gravest(codes)))
