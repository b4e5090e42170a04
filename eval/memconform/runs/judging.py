"""The last stage of an attempt: its answer is scored, outside of what is timed."""

import asyncio
from typing import Protocol

from memconform.datasets.model import Question
from memconform.printing.logs import Logger
from memconform.runs.journal import Journal
from memconform.runs.stages import AnswerRecord, JudgementRecord
from memconform.scoring.scorer import DaemonResponse, Scorer, TextKind
from memconform.scoring.statuses import QuestionStatus

_log = Logger()

_MOST_AT_ONCE = 64
"""Judgements that are waited for at once; whoever has one more waits before the next question."""


class OnJudged(Protocol):
    """Is told whether an answer passed."""

    def __call__(self, *, passed: bool) -> None: ...


def stored_response(answer: AnswerRecord, kind: TextKind) -> DaemonResponse:
    """An answer as it was journalled; its chunks are not kept."""
    return DaemonResponse(text=answer.text, kind=kind)


class Judging:
    """Scores answers and journals the judgements, several at a time where a service is asked."""

    def __init__(self, scorer: Scorer, journal: Journal) -> None:
        self._scorer = scorer
        self._journal = journal
        self._room = asyncio.Semaphore(_MOST_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()

    async def judge(
        self,
        row: int,
        attempt: int,
        question: Question,
        response: DaemonResponse,
        on_judged: OnJudged | None = None,
    ) -> None:
        """Have an answer scored: at once in this process, else beside whatever comes next.

        Args:
            row: of the question.
            attempt: at it.
            question: with what is expected.
            response: the text itself: a secret's mask must not decide over an answer.
            on_judged: called once that is known.

        Raises:
            ValueError: for a score that contradicts itself, here or from a later call.
        """
        if self._scorer.in_process:
            await self._judge(row, attempt, question, response, on_judged)
            return
        await self._room.acquire()
        self._raise_failure()
        task = asyncio.create_task(self._judge(row, attempt, question, response, on_judged))
        self._tasks.add(task)
        task.add_done_callback(lambda _: self._room.release())

    @property
    def is_waited_for(self) -> bool:
        """Whether judgements are begun of which nobody has seen the end."""
        return bool(self._tasks)

    async def drain(self) -> None:
        """Wait for all judgements; raises at once what one of them raised."""
        if self._tasks:
            await asyncio.wait(self._tasks, return_when=asyncio.FIRST_EXCEPTION)
            self._raise_failure()

    async def close(self) -> None:
        """Give up what is not judged; the journal holds the answers."""
        for task in self._tasks:
            task.cancel()
        for ended in await asyncio.gather(*self._tasks, return_exceptions=True):
            if isinstance(ended, Exception):
                _log.warning("a judgement failed", error=f"{type(ended).__name__}: {ended}")

    async def _judge(
        self,
        row: int,
        attempt: int,
        question: Question,
        response: DaemonResponse,
        on_judged: OnJudged | None,
    ) -> None:
        score = await self._scorer.score(question, response)
        self._journal.write(JudgementRecord.of(score, row=row, attempt=attempt, id=question.id))
        if on_judged is not None and score.status.measured:
            on_judged(passed=score.status is QuestionStatus.CORRECT)

    def _raise_failure(self) -> None:
        done = {task for task in self._tasks if task.done()}
        self._tasks -= done
        for task in done:
            task.result()
