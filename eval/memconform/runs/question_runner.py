"""Asks a ready daemon the questions of a plan."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from itertools import takewhile

from memconform.client.client import AS_CONTRACT
from memconform.client.failures import (
    CallError,
    CallTimeoutError,
    ContractViolatedError,
    DaemonFailedError,
)
from memconform.client.recorder import Exchange, keep_bodies, record_exchanges
from memconform.client.response_shape import shape
from memconform.contract.core import Chunk, Trace
from memconform.contract.wire import OWN, Mode, mode_name
from memconform.datasets.expected_text import holds_expected
from memconform.datasets.question import Question
from memconform.errors import DaemonError, MemconformError
from memconform.ingest.verification import IndexVerifier
from memconform.measuring.daemon_session import DaemonSession
from memconform.measuring.engine import Measurement
from memconform.measuring.scenario import Scenario, ScenarioResponse
from memconform.measuring.search_scenario import retrieve, retrieved_text
from memconform.printing.logs import Logger
from memconform.records import Failure
from memconform.redaction import redact
from memconform.runs.checkpoints import (
    Checkpoints,
    RetrievalSnapshot,
    not_repeatable,
)
from memconform.runs.journal import Journal
from memconform.runs.judgement_queue import JudgementQueue, stored_response
from memconform.runs.plan import Settings
from memconform.runs.relevance import RelevantDocuments
from memconform.runs.results import CallTimings, CitedChunk, RankedChunk, WireFingerprint
from memconform.runs.stages import AnswerRecord, JudgementRecord, RetrievalRecord
from memconform.scoring.scorer import DaemonResponse, Scorer
from memconform.scoring.statuses import QuestionStatus
from memconform.storage.body_files import BodyFiles
from memconform.upstream.prompt_watch import UpstreamWatch

_log = Logger()

_LAST_SECONDS = 2.0
"""How long an interrupted run may take to verify its last attempts."""

_VERDICTS: dict[type[CallError], QuestionStatus] = {
    DaemonFailedError: QuestionStatus.DAEMON_ERROR,
    ContractViolatedError: QuestionStatus.PROTOCOL_ERROR,
    CallTimeoutError: QuestionStatus.TIMEOUT,
}


def is_applicable(question: Question, scenario: Scenario) -> bool:
    """Whether a scenario can measure a question; a bare search cannot abstain."""
    return not (question.abstain and scenario.text_kind == "retrieval")


@dataclass(frozen=True, slots=True)
class _Trial:
    """One attempt at a question, or the judgement of an earlier one."""

    row: int
    question: Question
    stored: tuple[int, AnswerRecord] | None = None
    """Number and answer of the earlier one; a new one gets the next number when it ends."""


class QuestionRunner:
    """Asks questions concurrently and journals the outcome of each attempt."""

    def __init__(
        self,
        *,
        settings: Settings,
        scenario: Scenario,
        scorer: Scorer,
        session: DaemonSession,
        journal: Journal,
        verifier: IndexVerifier,
        auto_modes: tuple[Mode, ...] | None = None,
        advise: Callable[[CallError], str] = lambda _: "",
        reverify: bool = True,
        watch: UpstreamWatch | None = None,
        has_contract: bool = True,
    ) -> None:
        self._settings = settings
        self._has_contract = has_contract
        self._retrieval = settings.retrieval(verifier.counts.brain_id, auto_modes)
        self._scenario = scenario
        self._client = session.client
        self._advise = advise
        self._journal = journal
        self._bodies = BodyFiles(journal.path.parent)
        self._watch = watch
        self._monitor = session.monitor
        # A memory system may return memories that are no document's.
        seeded = verifier.seeded if has_contract else None
        self._documents = seeded.documents if seeded else None
        self._judging = JudgementQueue(scorer, journal)
        self._relevant = RelevantDocuments(self._documents)
        self.answered = 0
        """Answers of a reader so far that followed a retrieval with results."""
        self._begun: dict[int, Question] = {}
        """By row, what was begun and is not settled yet."""
        self.checkpoints = Checkpoints(
            verifier, journal, self._confirm, self._relevant.paths, reverify=reverify
        )

    @property
    def halted(self) -> MemconformError | None:
        """Why the remaining questions are not asked; None while they are."""
        return self._monitor.halted or self._judging.halted

    def is_open(self, row: int) -> bool:
        """Whether a question still lacks attempts or judgements."""
        return not self._journal.is_judged(row, self._settings.repeat)

    async def warm_up(self, question: Question) -> None:
        """Ask a question without counting it, so that no counted one pays for a cold start."""
        try:
            await self._put(question)
        except CallError as error:
            # A failure here recurs when it counts, but a restart behind it may not.
            self.checkpoints.record_failure(error)
            if self._watch is not None:
                self._watch.doubt()
        if self._watch is not None:
            await self._watch.prompts()

    async def ask_all(
        self, questions: Iterator[tuple[int, Question]], concurrency: int
    ) -> AsyncGenerator[Question, None]:
        """Ask all questions and yield each once it is settled; ends early if `halted` is set.

        If cancelled, it first settles the ended attempts, for at most `_LAST_SECONDS`.
        """
        trials = takewhile(lambda _: self.halted is None, self._trials(questions))
        # An attempt is journalled as it ends, and a statement names attempts by number: measuring
        # goes on after a doubt, and what ended before it must be told from what ended later.
        measurement = Measurement(ask=self._try, verify=self._verify_last, concurrency=concurrency)
        try:
            async with aclosing(measurement.run([trials])) as measured:
                async for _ in measured:
                    for question in self._settled():
                        yield question
            for question in self._settled():
                yield question
        except asyncio.CancelledError:
            with suppress(TimeoutError, CallError):
                async with asyncio.timeout(_LAST_SECONDS):
                    # Judgements in flight are paid for.
                    await asyncio.gather(self._judging.drain(), self._verify_twice())
            raise

    async def _verify_last(self) -> None:
        """Verify after the last attempt, and have everything judged."""
        if self._judging.has_pending:
            # Settle before waiting for a judge, so the attempts survive an interruption.
            await self._verify()
            await self._judging.drain()
        await self._verify(last=True)

    async def close(self) -> None:
        """Cancel pending judgements."""
        await self._judging.close()

    def _trials(self, questions: Iterator[tuple[int, Question]]) -> Iterator[_Trial]:
        """What is missing of each row: judgements of stored answers, and attempts."""
        for row, question in questions:
            self._begun[row] = question
            for stored in self._journal.unjudged(row):
                yield _Trial(row, question, stored)
            for _ in range(self._journal.attempts(row), self._settings.repeat):
                yield _Trial(row, question)

    async def _try(self, trial: _Trial) -> None:
        if trial.stored is None:
            await self._attempt(trial.row, trial.question)
            if self.checkpoints.due:
                await self._verify()
            return
        attempt, answer = trial.stored
        response = stored_response(answer, self._scenario.text_kind)
        await self._judging.judge(trial.row, attempt, trial.question, response)

    async def _verify_twice(self) -> None:
        """Settle what has ended, then prove all documents if there is time left."""
        await self._verify()
        await self._verify(last=True)

    async def _verify(self, *, last: bool = False) -> None:
        # A judge that ended the run says nothing against the daemon: what it answered is proven.
        if self._monitor.halted is not None:
            return
        try:
            await self.checkpoints.verify(last=last)
        except DaemonError as error:
            self._monitor.halt(await self._monitor.cause_of(error))
        if self._watch is not None:
            # Prompts of the verification must not be attributed to the next question.
            await self._watch.prompts()

    def _settled(self) -> Iterator[Question]:
        """Remove and yield the questions that are complete: asked, judged and settled."""
        settled = [
            row
            for row in self._begun
            if self._journal.is_judged(row, self._settings.repeat) and self._journal.is_settled(row)
        ]
        return map(self._begun.pop, settled)

    async def _attempt(self, row: int, question: Question) -> None:
        """Ask a question once, journal the outcome and have the answer judged."""
        with record_exchanges() as exchanges:
            try:
                response = await self._put(question)
                if self._documents is not None:
                    self._documents.require_own(response.chunks)
            except CallError as error:
                self._record_failure(row, question, error, exchanges)
                return
        self._monitor.answered()
        self.answered += self._scenario.text_kind == "answer" and bool(response.chunks)
        # For every attempt: prompts not fetched now would be attributed to the next question.
        fingerprint = await self._observe(exchanges[-1])
        # No await from here to adding the attempt: others at this question may end, too, and no
        # verification can come between.
        attempt = self._journal.attempts(row)
        number = self._journal.write(
            self._retrieval_record(row, attempt, question, response, fingerprint),
            _answer_record(row, attempt, response),
        )
        snapshot = self._snapshot(number, question, response.chunks, response.trace)
        self.checkpoints.add(snapshot)
        scored = DaemonResponse(text=response.text, kind=response.kind)
        await self._judging.judge(row, attempt, question, scored, snapshot.mark_judged)

    def _record_failure(
        self, row: int, question: Question, error: CallError, exchanges: list[Exchange]
    ) -> None:
        attempt = self._journal.attempts(row)
        fields = {"code": error.code, "message": error.message}
        _log.info("question not measured", id=question.id, **fields)
        self._monitor.failed(error)
        self.checkpoints.record_failure(error)
        if self._watch is not None:
            self._watch.doubt()
        self._journal.write(
            JudgementRecord(
                row=row,
                attempt=attempt,
                id=question.id,
                verdict=_VERDICTS[type(error)],
                score=None,
                error=Failure(
                    **fields,
                    body=error.body,
                    hint=self._advise(error),
                    **self._store_wire(row, attempt, exchanges),
                ),
            )
        )

    async def _put(self, question: Question) -> ScenarioResponse:
        call = self._scenario.put(self._client, question, self._retrieval)
        return await self._monitor.call(call)

    async def _observe(self, exchange: Exchange) -> WireFingerprint:
        request = exchange.request
        # Only the path after the brain: address and brain id are not part of the request.
        path = request.url.path.rpartition(f"/{self._retrieval.brain}/")[2]
        content = f"{request.method} {path}\n".encode() + request.content
        content = request.extensions.get(AS_CONTRACT, content)
        return WireFingerprint(
            request=hashlib.sha256(content).hexdigest(),
            shape=shape(exchange),
            prompts=await self._watch.prompts() if self._watch is not None else None,
        )

    def _store_wire(self, row: int, attempt: int, exchanges: list[Exchange]) -> dict[str, str]:
        """Save the exchanges of a failed attempt; returns the file and a curl command."""
        if not exchanges:
            return {}
        name = f"wire/{row:06}-{attempt}.http"
        with keep_bodies(self._bodies.keep_from_here):
            self._journal.write_attachment(name, b"".join(e.transcript() for e in exchanges))
            return {"curl": exchanges[-1].curl(), "wire": name}

    def _first_hit(self, question: Question, response: ScenarioResponse) -> int | None:
        if question.abstain:
            return None
        hits = (holds_expected(question, chunk.text) for chunk in response.chunks)
        return next((rank for rank, hit in enumerate(hits, 1) if hit), None)

    def _snapshot(
        self, number: int, question: Question, chunks: Sequence[Chunk], trace: Trace
    ) -> RetrievalSnapshot:
        held = not question.abstain and holds_expected(question, retrieved_text(chunks))
        ids = None if trace.reranked else tuple(chunk.chunk_id for chunk in chunks)
        return RetrievalSnapshot(number, question, held, ids)

    async def _confirm(self, before: RetrievalSnapshot) -> Failure | None:
        """Repeat a retrieval; returns why the attempt does not count, or None if it does.

        Raises:
            CallError: if it cannot be repeated.
        """
        question = before.question
        repetition = retrieve(self._client, question, self._retrieval, dated=self._scenario.dated)
        answer, _ = await self._monitor.call(repetition)
        if self._documents is not None:
            self._documents.require_own(answer.chunks)
        now = self._snapshot(before.number, question, answer.chunks, answer.trace)
        return None if now.repeats(before) else not_repeatable(before, now)

    def _retrieval_record(
        self,
        row: int,
        attempt: int,
        question: Question,
        response: ScenarioResponse,
        fingerprint: WireFingerprint,
    ) -> RetrievalRecord:
        trace = response.trace.model_dump(mode="json", by_alias=True, exclude_none=True)
        mode = mode_name(response.trace.effective_mode)
        if not self._has_contract:
            # Results count modes by the trace, which has none of a system.
            mode = trace["effectiveMode"] = OWN
        return RetrievalRecord(
            row=row,
            attempt=attempt,
            id=question.id,
            mode=mode,
            ranking=[
                RankedChunk(
                    chunk_id=chunk.chunk_id,
                    document_id=chunk.document_id,
                    path=chunk.path,
                    score=chunk.score,
                    content=hashlib.sha256(chunk.text.encode()).hexdigest()[:16],
                )
                for chunk in response.chunks
            ],
            null_chunks=response.null_chunks,
            first_hit=self._first_hit(question, response),
            seen=fingerprint,
            trace=trace,
            timings=CallTimings(
                first_byte=response.timings.first_byte_ms,
                first_event=response.timings.first_event_ms,
                first_delta=response.timings.first_delta_ms,
                done=response.timings.done_ms,
                daemon=response.timings.daemon_ms,
            ),
        )


def _answer_record(row: int, attempt: int, response: ScenarioResponse) -> AnswerRecord:
    return AnswerRecord(
        row=row,
        attempt=attempt,
        text=response.text,
        redacted=redact(response.text) != response.text,
        citations=[
            CitedChunk(chunk_id=citation.chunk_id, path=citation.path, score=citation.score)
            for citation in response.citations
        ],
    )
