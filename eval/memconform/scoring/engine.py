"""Has answers read and judged: several at a time, until an error that concerns all calls."""

import time
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from memconform.concurrency import work_through
from memconform.datasets.error_text import error_message
from memconform.datasets.question import Question, TextKind
from memconform.errors import MemconformError
from memconform.llm.chat import HaltingError, merge_halts
from memconform.records import Failure
from memconform.scoring.judge.records import JudgeVote, unfinished_votes, votes_of
from memconform.scoring.scorer import DaemonResponse, Score, Scorer

if TYPE_CHECKING:
    from memconform.scoring.reader.passages import Passage
    from memconform.scoring.reader.reader import Reader, Reading

_AT_ONCE = 64
"""Answers that are judged at once; each service limits its own calls."""

_Key = TypeVar("_Key")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringTask(Generic[_Key]):
    """An answer to score, or what a reader answers from."""

    key: _Key
    """By which the caller knows it."""
    question: Question
    text: str | None = None
    """The answer; None if the reader answers."""
    kind: TextKind = "answer"
    passages: "Sequence[Passage] | None" = None
    """What the reader is shown, in this order; None if there is no memory at all."""
    failure: Failure | None = None
    """Why nobody is asked, though there may be a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredAnswer(Generic[_Key]):
    """What came of a task: an answer with its score, or why there is none."""

    task: ScoringTask[_Key]
    text: str | None = None
    """The answer; None if the reader gave none."""
    score: Score | None = None
    """None if the answer was not judged."""
    failure: Failure | None = None
    """Why there is no answer, or nobody was asked to judge it."""
    votes: list[JudgeVote] = field(default_factory=list)
    """Without a score those that were paid for before an error ended the panel."""
    reading: "Reading | None" = None
    """What the reader did; None if it was not asked."""
    reader_ms: float | None = None
    """None for a cached reply; `judge_ms` likewise."""
    judge_ms: float | None = None


class ScoringEngine:
    """Reads and judges.

    After an error that concerns all calls nothing more is asked: what is left fails with it.
    """

    def __init__(self, scorer: Scorer, reader: "Reader | None" = None) -> None:
        """Have answers scored by `scorer`, and written by `reader` where a task has none."""
        self._scorer = scorer
        self._reader = reader
        self.halted: HaltingError | None = None
        """Why nothing more is asked, once that is so."""

    async def score_all(
        self, tasks: Iterable[ScoringTask[_Key]], concurrency: int = _AT_ONCE
    ) -> AsyncGenerator[ScoredAnswer[_Key], None]:
        """Yield each task as it is done; `concurrency` of them are in progress, and in memory."""
        async with aclosing(work_through(iter(tasks), self.score, concurrency)) as scored:
            async for each in scored:
                yield each

    async def score(self, task: ScoringTask[_Key]) -> ScoredAnswer[_Key]:
        """Have one answer written, unless it exists, and judged."""
        if task.failure is not None:
            return ScoredAnswer(task=task, text=task.text, failure=task.failure)
        if task.text is not None:
            return await self._judge(ScoredAnswer(task=task, text=task.text))
        if self.halted is not None:
            return ScoredAnswer(task=task, failure=_failure(self.halted))
        if self._reader is None:
            raise ValueError(f"{task.question.id!r} has no answer, and there is no reader")
        started = time.perf_counter()
        reading = await self._reader.read(
            task.question.question,
            task.question.question_date,
            task.passages,
            partial(error_message, task.question),
        )
        elapsed = (time.perf_counter() - started) * 1e3
        if (error := reading.failure) is not None:
            if isinstance(error, HaltingError):
                self.halted = merge_halts(self.halted, error)
            return ScoredAnswer(task=task, reading=reading, failure=_failure(error))
        is_cached = reading.reader.calls == reading.reader.cached
        return await self._judge(
            ScoredAnswer(
                task=task,
                text=reading.answer,
                reading=reading,
                reader_ms=None if is_cached else elapsed,
            )
        )

    async def _judge(self, answer: ScoredAnswer[_Key]) -> ScoredAnswer[_Key]:
        if self.halted is not None and not self._scorer.in_process:
            return replace(answer, failure=_failure(self.halted))
        task, text = answer.task, answer.text or ""
        started = time.perf_counter()
        try:
            score = await self._scorer.score(
                task.question, DaemonResponse(text=text, kind=task.kind)
            )
        except HaltingError as error:
            self.halted = merge_halts(self.halted, error)
            return replace(answer, failure=_failure(error), votes=unfinished_votes(error))
        elapsed = (time.perf_counter() - started) * 1e3
        votes = votes_of(score.detail)
        is_cached = all(vote.cached for vote in votes)
        return replace(answer, score=score, votes=votes, judge_ms=None if is_cached else elapsed)


def _failure(error: MemconformError) -> Failure:
    return Failure(code=error.code, message=error.message)
