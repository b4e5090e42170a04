"""The last stage of an attempt: scoring its answer, outside the measured latency."""

import asyncio
from typing import Protocol

from memconform.datasets.question import Question, TextKind
from memconform.llm.chat import HaltingError
from memconform.printing.logs import Logger
from memconform.runs.journal import Journal
from memconform.runs.stages import AnswerRecord, JudgementRecord
from memconform.scoring.engine import ScoringEngine, ScoringTask
from memconform.scoring.scorer import DaemonResponse, Scorer
from memconform.scoring.statuses import QuestionStatus

_log = Logger()

_MOST_AT_ONCE = 64
"""Concurrent judgements; one more delays the next question."""


class JudgementCallback(Protocol):
    """Receives whether an answer passed."""

    def __call__(self, *, passed: bool) -> None: ...


def stored_response(answer: AnswerRecord, kind: TextKind) -> DaemonResponse:
    """The journalled answer as a response that can be scored."""
    return DaemonResponse(text=answer.text, kind=kind)


class JudgementQueue:
    """Scores answers and journals the judgements, concurrently if the scorer calls a service."""

    def __init__(self, scorer: Scorer, journal: Journal) -> None:
        self._scorer = scorer
        self._engine = ScoringEngine(scorer)
        self._journal = journal
        self._slots = asyncio.Semaphore(_MOST_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def halted(self) -> HaltingError | None:
        """Why nothing more is judged, once that is so."""
        return self._engine.halted

    async def judge(
        self,
        row: int,
        attempt: int,
        question: Question,
        response: DaemonResponse,
        on_judged: JudgementCallback | None = None,
    ) -> None:
        """Score an answer: immediately if the scorer runs in process, else in the background.

        Args:
            row: the question's row.
            attempt: the attempt at the question, from 0.
            question: the question with its expectations.
            response: the unmasked text, because masking a secret must not change a score.
            on_judged: called with the judgement of a measured attempt.

        Raises:
            ValueError: if a score contradicts itself; for background judgements, from a later call.
        """
        if self._scorer.in_process:
            await self._judge(row, attempt, question, response, on_judged)
            return
        await self._slots.acquire()
        self._raise_failure()
        if self.halted is not None:
            self._slots.release()
            return
        task = asyncio.create_task(self._judge(row, attempt, question, response, on_judged))
        self._tasks.add(task)
        task.add_done_callback(lambda _: self._slots.release())

    @property
    def has_pending(self) -> bool:
        """Whether judgements were started and not awaited yet."""
        return bool(self._tasks)

    async def drain(self) -> None:
        """Wait for all judgements; raises the first failure at once."""
        if self._tasks:
            await asyncio.wait(self._tasks, return_when=asyncio.FIRST_EXCEPTION)
            self._raise_failure()

    async def close(self) -> None:
        """Cancel pending judgements; the journal keeps their answers."""
        for task in self._tasks:
            task.cancel()
        for outcome in await asyncio.gather(*self._tasks, return_exceptions=True):
            if isinstance(outcome, Exception):
                _log.warning("a judgement failed", error=f"{type(outcome).__name__}: {outcome}")

    async def _judge(
        self,
        row: int,
        attempt: int,
        question: Question,
        response: DaemonResponse,
        on_judged: JudgementCallback | None,
    ) -> None:
        task = ScoringTask(key=None, question=question, text=response.text, kind=response.kind)
        score = (await self._engine.score(task)).score
        if score is None:
            # No other answer can be judged either: this one stays unjudged, and is resumed.
            return
        self._journal.write(JudgementRecord.of(score, row=row, attempt=attempt, id=question.id))
        if on_judged is not None and score.status.measured:
            on_judged(passed=score.status is QuestionStatus.CORRECT)

    def _raise_failure(self) -> None:
        done = {task for task in self._tasks if task.done()}
        self._tasks -= done
        for task in done:
            task.result()
