"""Putting a plan's questions to a daemon that is ready."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Iterator

import structlog

from memconform.client.client import ContractClient
from memconform.client.failures import (
    CallError,
    CallTimeoutError,
    ContractViolatedError,
    DaemonFailedError,
)
from memconform.client.recorder import Exchange, recorded
from memconform.client.shape import shape
from memconform.daemons.runner import Daemon
from memconform.datasets.model import Question
from memconform.errors import MemconformError
from memconform.redaction import redact
from memconform.runs.fold import fold
from memconform.runs.journal import (
    AnswerRecord,
    Journal,
    JudgementRecord,
    RetrievalRecord,
    StageRecord,
)
from memconform.runs.lifeline import Lifeline
from memconform.runs.plan import Settings
from memconform.runs.results import (
    CallTimings,
    CitedChunk,
    Failure,
    QuestionResult,
    RankedChunk,
    Seen,
)
from memconform.scenarios.outcome import Outcome, Scenario
from memconform.scoring.scorer import ExactScorer
from memconform.scoring.verdicts import PASS_THRESHOLD, Verdict
from memconform.upstream.watching import UpstreamWatch

_log = structlog.get_logger()

_VERDICTS: dict[type[CallError], Verdict] = {
    DaemonFailedError: Verdict.DAEMON_ERROR,
    ContractViolatedError: Verdict.PROTOCOL_ERROR,
    CallTimeoutError: Verdict.TIMEOUT,
}


def is_applicable(question: Question, scenario: Scenario) -> bool:
    """Whether a scenario can answer a question: a bare search cannot abstain."""
    return not (question.abstain and scenario.text_kind == "retrieval")


class Asker:
    """Asks with as many questions in flight as the plan allows; journals what comes of each."""

    def __init__(
        self,
        *,
        settings: Settings,
        scenario: Scenario,
        scorer: ExactScorer,
        client: ContractClient,
        daemon: Daemon,
        journal: Journal,
        paths: frozenset[str] | None = None,
        watch: UpstreamWatch | None = None,
    ) -> None:
        self._settings = settings
        self._retrieval = settings.retrieval
        self._scenario = scenario
        self._scorer = scorer
        self._client = client
        self._journal = journal
        self._paths = paths
        self._watch = watch
        self._lifeline = Lifeline(daemon)

    @property
    def halted(self) -> MemconformError | None:
        """Why the rest was not asked, once that is so."""
        return self._lifeline.halted

    def is_open(self, row: int) -> bool:
        """Whether a question still lacks attempts."""
        return self._journal.attempts(row) < self._settings.repeat

    async def warm_up(self, question: Question) -> None:
        """Put a question that is not counted, so that the first counted one is like the others."""
        try:
            await self._put(question)
        except CallError:
            # What fails here fails again when it counts.
            if self._watch is not None:
                self._watch.doubt()
        if self._watch is not None:
            await self._watch.prompts()

    async def ask_all(
        self, questions: Iterator[tuple[int, Question]], concurrency: int
    ) -> AsyncGenerator[QuestionResult, None]:
        """Results as they come; ends early where `halted` says why."""
        results: asyncio.Queue[QuestionResult | None] = asyncio.Queue()
        workers = [asyncio.create_task(self._work(questions, results)) for _ in range(concurrency)]
        closing = asyncio.create_task(_close_after(workers, results))
        try:
            while (result := await results.get()) is not None:
                yield result
            for worker in workers:
                if worker.done():
                    worker.result()
        finally:
            for task in (*workers, closing):
                task.cancel()
            await asyncio.gather(*workers, closing, return_exceptions=True)

    def close(self) -> None:
        self._lifeline.close()

    async def _work(
        self,
        questions: Iterator[tuple[int, Question]],
        results: "asyncio.Queue[QuestionResult | None]",
    ) -> None:
        for row, question in questions:
            if self.halted is not None:
                return
            records = list(self._journal.read(row))
            for attempt in range(self._journal.attempts(row), self._settings.repeat):
                trial = await self._attempt(row, attempt, question)
                self._journal.write(row, trial)
                records += trial
                if self.halted is not None:
                    break
            results.put_nowait(fold(question, records, self._settings.repeat))

    async def _attempt(self, row: int, attempt: int, question: Question) -> list[StageRecord]:
        with recorded() as exchanges:
            try:
                outcome = await self._put(question)
                self._refuse_foreign(outcome)
            except CallError as error:
                why = {"code": error.code, "message": error.message}
                _log.info("question not measured", id=question.id, **why)
                self._lifeline.failed(error)
                if self._watch is not None:
                    self._watch.doubt()
                failure = Failure(**why, body=error.body, **self._keep(row, attempt, exchanges))
                judgement = JudgementRecord(
                    row=row,
                    attempt=attempt,
                    id=question.id,
                    verdict=_VERDICTS[type(error)],
                    score=None,
                    error=failure,
                )
                return [judgement]
        self._lifeline.answered()
        seen = await self._observe(exchanges[-1])
        return self._judged(row, attempt, question, outcome, seen)

    async def _put(self, question: Question) -> Outcome:
        put = self._scenario.put(self._client, question, self._retrieval)
        return await self._lifeline.over(put)

    async def _observe(self, exchange: Exchange) -> Seen:
        request = exchange.request
        # Behind the brain: where the daemon is, and which brain was taken, is not what was asked.
        path = request.url.path.rpartition(f"/{self._settings.brain}/")[2]
        sent = f"{request.method} {path}\n".encode() + request.content
        return Seen(
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

    def _refuse_foreign(self, outcome: Outcome) -> None:
        """Raises ContractViolatedError where a chunk is of no document that went in."""
        if self._paths is None:
            return
        for chunk in outcome.chunks:
            if chunk.path not in self._paths:
                raise ContractViolatedError(
                    "foreign_chunk", f"{chunk.path} was retrieved, and never ingested"
                )

    def _first_hit(self, question: Question, outcome: Outcome) -> int | None:
        if question.abstain:
            return None
        scores = (
            self._scorer.score(question, redact(chunk.text), "retrieval").value
            for chunk in outcome.chunks
        )
        return next((n for n, score in enumerate(scores, 1) if score >= PASS_THRESHOLD), None)

    def _judged(
        self, row: int, attempt: int, question: Question, outcome: Outcome, seen: Seen
    ) -> list[StageRecord]:
        # As it will be stored, so that scoring it anew gives the same.
        text = redact(outcome.text)
        score = self._scorer.score(question, text, self._scenario.text_kind)
        return [
            RetrievalRecord(
                row=row,
                attempt=attempt,
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
                seen=seen if attempt == 0 else None,
                trace=outcome.trace.model_dump(mode="json", by_alias=True, exclude_none=True),
                timings=CallTimings(
                    first_byte=outcome.timings.first_byte_ms,
                    first_event=outcome.timings.first_event_ms,
                    first_delta=outcome.timings.first_delta_ms,
                    done=outcome.timings.done_ms,
                ),
            ),
            AnswerRecord(
                row=row,
                attempt=attempt,
                text=text,
                citations=[
                    CitedChunk(chunk_id=cited.chunk_id, path=cited.path, score=cited.score)
                    for cited in outcome.citations
                ],
            ),
            JudgementRecord(
                row=row,
                attempt=attempt,
                id=question.id,
                verdict=score.verdict,
                score=score.value,
                error=None,
            ),
        ]


async def _close_after(
    workers: "list[asyncio.Task[None]]", results: "asyncio.Queue[QuestionResult | None]"
) -> None:
    await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
    results.put_nowait(None)
