"""Putting a plan's questions to a daemon that is ready."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, suppress
from itertools import takewhile

from memconform.client.client import ContractClient
from memconform.client.failures import (
    CallError,
    CallTimeoutError,
    ContractViolatedError,
    DaemonFailedError,
)
from memconform.client.recorder import Exchange, record_exchanges
from memconform.client.shape import shape
from memconform.contract.core import Chunk, Trace
from memconform.daemons.runner import Daemon
from memconform.datasets.model import Question
from memconform.errors import DaemonError, MemconformError
from memconform.ingest.monitor import DaemonMonitor
from memconform.ingest.verification import IndexVerifier
from memconform.printing.logs import Logger
from memconform.records import Failure
from memconform.redaction import redact
from memconform.runs.checkpoints import Checkpoints, Retrieved, not_repeatable, unconfirmed
from memconform.runs.journal import Journal
from memconform.runs.judging import Judging, stored_response
from memconform.runs.loop import work_through
from memconform.runs.plan import Settings
from memconform.runs.relevance import RelevantDocuments
from memconform.runs.results import CallTimings, CitedChunk, RankedChunk, WireFingerprint
from memconform.runs.stages import AnswerRecord, JudgementRecord, RetrievalRecord
from memconform.scenarios.scenario import Scenario, ScenarioResponse
from memconform.scenarios.search import retrieve, retrieved_text
from memconform.scoring.exact import holds_expected
from memconform.scoring.scorer import Scorer
from memconform.scoring.statuses import QuestionStatus
from memconform.upstream.watching import UpstreamWatch

_log = Logger()

_LAST_SECONDS = 2.0
"""How long an interrupted run may take to see whether what it measured counts."""

_VERDICTS: dict[type[CallError], QuestionStatus] = {
    DaemonFailedError: QuestionStatus.DAEMON_ERROR,
    ContractViolatedError: QuestionStatus.PROTOCOL_ERROR,
    CallTimeoutError: QuestionStatus.TIMEOUT,
}


def is_applicable(question: Question, scenario: Scenario) -> bool:
    """Whether a scenario can answer a question: a bare search cannot abstain."""
    return not (question.abstain and scenario.text_kind == "retrieval")


class QuestionRunner:
    """Asks with as many questions in flight as the plan allows; journals what comes of each."""

    def __init__(
        self,
        *,
        settings: Settings,
        scenario: Scenario,
        scorer: Scorer,
        client: ContractClient,
        daemon: Daemon,
        journal: Journal,
        verifier: IndexVerifier,
        reproof: bool = True,
        watch: UpstreamWatch | None = None,
    ) -> None:
        self._settings = settings
        self._retrieval = settings.retrieval(verifier.counts.brain_id)
        self._scenario = scenario
        self._client = client
        self._journal = journal
        self._watch = watch
        self._monitor = DaemonMonitor(daemon)
        self._documents = verifier.seeded.documents if verifier.seeded else None
        self._judging = Judging(scorer, journal)
        self._relevant = RelevantDocuments(self._documents)
        self._ended: list[tuple[int, Question]] = []
        """Rows whose last attempt has ended, and does not count yet."""
        self.checkpoints = Checkpoints(
            verifier, journal, self._confirm, self._relevant.paths, reproof=reproof
        )

    @property
    def halted(self) -> MemconformError | None:
        """Why the rest was not asked, once that is so."""
        return self._monitor.halted

    def is_open(self, row: int) -> bool:
        """Whether a question still lacks attempts, or judgements of them."""
        return not self._journal.is_judged(row, self._settings.repeat)

    async def warm_up(self, question: Question) -> None:
        """Put a question that is not counted, so that the first counted one is like the others."""
        try:
            await self._put(question)
        except CallError as error:
            # What fails here fails again when it counts; that something has restarted may not.
            self.checkpoints.failed(error)
            if self._watch is not None:
                self._watch.doubt()
        if self._watch is not None:
            await self._watch.prompts()

    async def ask_all(
        self, questions: Iterator[tuple[int, Question]], concurrency: int
    ) -> AsyncGenerator[Question, None]:
        """Questions as they come to count; ends early where `halted` says why.

        A cancelled one still settles what has ended, where that takes no longer than
        `_LAST_SECONDS`.
        """
        wanted = takewhile(lambda _: self.halted is None, questions)
        try:
            async with aclosing(work_through(wanted, self._ask, concurrency)) as counted:
                async for finished in counted:
                    for question in finished:
                        yield question
            if self._judging.is_waited_for:
                # Before the wait for a judge: what is settled survives whatever comes meanwhile.
                await self._verify()
                await self._judging.drain()
            await self._verify(last=True)
            for question in self._counted():
                yield question
        except asyncio.CancelledError:
            with suppress(TimeoutError, CallError):
                async with asyncio.timeout(_LAST_SECONDS):
                    await self._verify()
                    # All documents, should there be time left for them.
                    await self._verify(last=True)
            raise

    async def close(self) -> None:
        await self._judging.close()
        self._monitor.close()

    async def _ask(self, item: tuple[int, Question]) -> list[Question]:
        """Make the attempts that a row lacks; the questions that count by now, of any row."""
        row, question = item
        for attempt, answer in self._journal.unjudged(row):
            response = stored_response(answer, self._scenario.text_kind)
            await self._judging.judge(row, attempt, question, response)
        for attempt in range(self._journal.attempts(row), self._settings.repeat):
            if self.halted is not None:
                return []
            await self._attempt(row, attempt, question)
            if self.checkpoints.due:
                await self._verify()
        self._ended.append((row, question))
        return list(self._counted())

    async def _verify(self, *, last: bool = False) -> None:
        if self.halted is not None:
            return
        try:
            await self.checkpoints.verify(last=last)
        except DaemonError as error:
            self._monitor.halt(await self._monitor.cause_of(error))
        if self._watch is not None:
            # What the daemon asked for us is not what it asks for the next question.
            await self._watch.prompts()

    def _counted(self) -> Iterator[Question]:
        """Questions all attempts at which are settled by now."""
        ended, self._ended = self._ended, []
        for row, question in ended:
            if self._journal.is_settled(row):
                yield question
            else:
                self._ended.append((row, question))

    async def _attempt(self, row: int, attempt: int, question: Question) -> None:
        """Put a question, journal what comes of it, and have that judged."""
        with record_exchanges() as exchanges:
            try:
                outcome = await self._put(question)
                if self._documents is not None:
                    self._documents.require_own(outcome.chunks)
            except CallError as error:
                self._failed(row, attempt, question, error, exchanges)
                return
        self._monitor.answered()
        # For every attempt: what is not fetched now would be taken for the next question's.
        seen = await self._observe(exchanges[-1])
        # Nothing is awaited between the record and its note: no verification comes between them.
        number = self._journal.write(
            self._retrieval_record(row, attempt, question, outcome, seen),
            _answer_record(row, attempt, outcome),
        )
        retrieved = self._retrieved(number, question, outcome.chunks, outcome.trace)
        self.checkpoints.note(retrieved)
        await self._judging.judge(row, attempt, question, outcome, retrieved.mark_judged)

    def _failed(
        self,
        row: int,
        attempt: int,
        question: Question,
        error: CallError,
        exchanges: list[Exchange],
    ) -> None:
        why = {"code": error.code, "message": error.message}
        _log.info("question not measured", id=question.id, **why)
        self._monitor.failed(error)
        self.checkpoints.failed(error)
        if self._watch is not None:
            self._watch.doubt()
        self._journal.write(
            JudgementRecord(
                row=row,
                attempt=attempt,
                id=question.id,
                verdict=_VERDICTS[type(error)],
                score=None,
                error=Failure(**why, body=error.body, **self._keep(row, attempt, exchanges)),
            )
        )

    async def _put(self, question: Question) -> ScenarioResponse:
        put = self._scenario.put(self._client, question, self._retrieval)
        return await self._monitor.call(put)

    async def _observe(self, exchange: Exchange) -> WireFingerprint:
        request = exchange.request
        # Behind the brain: where the daemon is, and which brain was taken, is not what was asked.
        path = request.url.path.rpartition(f"/{self._retrieval.brain}/")[2]
        sent = f"{request.method} {path}\n".encode() + request.content
        return WireFingerprint(
            request=hashlib.sha256(sent).hexdigest(),
            shape=shape(exchange),
            prompts=await self._watch.prompts() if self._watch is not None else None,
        )

    def _keep(self, row: int, attempt: int, exchanges: list[Exchange]) -> dict[str, str]:
        """Keep the wire of a failed attempt; where it is, and how to repeat it."""
        if not exchanges:
            return {}
        name = f"wire/{row:06}-{attempt}.http"
        self._journal.keep_beside(name, b"".join(e.transcript() for e in exchanges))
        return {"curl": exchanges[-1].curl(), "wire": name}

    def _first_hit(self, question: Question, outcome: ScenarioResponse) -> int | None:
        if question.abstain:
            return None
        holding = (holds_expected(question, chunk.text) for chunk in outcome.chunks)
        return next((n for n, holds in enumerate(holding, 1) if holds), None)

    def _retrieved(
        self, number: int, question: Question, chunks: Sequence[Chunk], trace: Trace
    ) -> Retrieved:
        held = not question.abstain and holds_expected(question, retrieved_text(chunks))
        ids = None if trace.reranked else tuple(chunk.chunk_id for chunk in chunks)
        return Retrieved(number, question, held, ids)

    async def _confirm(self, before: Retrieved) -> Failure | None:
        """Make a retrieval again; why the attempt is no measurement, or None."""
        question = before.question
        again = retrieve(self._client, question, self._retrieval, dated=self._scenario.dated)
        try:
            answer, _ = await self._monitor.call(again)
            if self._documents is not None:
                self._documents.require_own(answer.chunks)
        except CallError as error:
            self.checkpoints.failed(error)
            return unconfirmed(error)
        now = self._retrieved(before.number, question, answer.chunks, answer.trace)
        return None if now.repeats(before) else not_repeatable(before, now)

    def _retrieval_record(
        self,
        row: int,
        attempt: int,
        question: Question,
        outcome: ScenarioResponse,
        seen: WireFingerprint,
    ) -> RetrievalRecord:
        return RetrievalRecord(
            row=row,
            attempt=attempt,
            id=question.id,
            mode=outcome.trace.effective_mode,
            ranking=[
                RankedChunk(
                    chunk_id=chunk.chunk_id,
                    document_id=chunk.document_id,
                    path=chunk.path,
                    score=chunk.score,
                    content=hashlib.sha256(chunk.text.encode()).hexdigest()[:16],
                )
                for chunk in outcome.chunks
            ],
            first_hit=self._first_hit(question, outcome),
            seen=seen,
            trace=outcome.trace.model_dump(mode="json", by_alias=True, exclude_none=True),
            timings=CallTimings(
                first_byte=outcome.timings.first_byte_ms,
                first_event=outcome.timings.first_event_ms,
                first_delta=outcome.timings.first_delta_ms,
                done=outcome.timings.done_ms,
            ),
        )


def _answer_record(row: int, attempt: int, outcome: ScenarioResponse) -> AnswerRecord:
    return AnswerRecord(
        row=row,
        attempt=attempt,
        text=outcome.text,
        redacted=redact(outcome.text) != outcome.text,
        citations=[
            CitedChunk(chunk_id=cited.chunk_id, path=cited.path, score=cited.score)
            for cited in outcome.citations
        ],
    )
