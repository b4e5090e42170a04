"""The last stage of an attempt: its answer is scored, outside of what is timed."""

import asyncio
from collections.abc import Callable

from memconform.datasets.model import Question
from memconform.runs.journal import Journal
from memconform.runs.stages import AnswerRecord, JudgementRecord
from memconform.scoring.scorer import DaemonResponse, Scorer, TextKind
from memconform.scoring.statuses import QuestionStatus

_MOST_WAITING = 64
"""Answers that wait for their judgement; no question is put while there are more."""


def stored_response(answer: AnswerRecord, kind: TextKind) -> DaemonResponse:
    """An answer as it was journalled; its chunks are not kept."""
    return DaemonResponse(text=answer.text, kind=kind)


class Judging:
    """Scores answers and journals the judgements, several at a time where a service is asked."""

    def __init__(self, scorer: Scorer, journal: Journal) -> None:
        self._scorer = scorer
        self._journal = journal
        self._room = asyncio.Semaphore(_MOST_WAITING)
        self._tasks: set[asyncio.Task[None]] = set()

    async def judge(
        self,
        row: int,
        attempt: int,
        question: Question,
        response: DaemonResponse,
        passed: Callable[[], None] = lambda: None,
    ) -> None:
        """Have an answer scored: at once in this process, else beside whatever comes next.

        Args:
            row: of the question.
            attempt: at it.
            question: with what is expected.
            response: the text itself: a secret's mask must not decide over an answer.
            passed: called where it passed, once that is known.

        Raises:
            ValueError: for a score that contradicts itself, here or from a later call.
        """
        if self._scorer.in_process:
            await self._judge(row, attempt, question, response, passed)
            return
        await self._room.acquire()
        self._raise_failure()
        task = asyncio.create_task(self._judge(row, attempt, question, response, passed))
        self._tasks.add(task)
        task.add_done_callback(lambda _: self._room.release())

    async def drain(self) -> None:
        """Wait for all judgements."""
        if self._tasks:
            await asyncio.wait(self._tasks)
            self._raise_failure()

    async def close(self) -> None:
        """Give up what is not judged; the journal holds the answers."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _judge(
        self,
        row: int,
        attempt: int,
        question: Question,
        response: DaemonResponse,
        passed: Callable[[], None],
    ) -> None:
        score = await self._scorer.score(question, response)
        self._journal.write(JudgementRecord.of(score, row=row, attempt=attempt, id=question.id))
        if score.status is QuestionStatus.CORRECT:
            passed()

    def _raise_failure(self) -> None:
        done = {task for task in self._tasks if task.done()}
        self._tasks -= done
        for task in done:
            task.result()
