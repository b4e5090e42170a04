"""Judging many answers at once."""

from collections import Counter
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field

from memconform.datasets.model import Question
from memconform.llm.chat import HaltingError, merge_halts
from memconform.runs.loop import work_through
from memconform.scoring.judge.scorer import JudgeScorer
from memconform.scoring.scorer import DaemonResponse, Score

_AT_ONCE = 64
"""Answers judged concurrently; each provider's limiter caps its calls."""


@dataclass(slots=True)
class Judging:
    """Judges answers, several at a time, until an error that concerns all calls."""

    scorer: JudgeScorer
    halted: HaltingError | None = field(default=None, init=False)
    """The error that ended it early."""

    async def scores(
        self, answers: Iterable[tuple[Question, str]]
    ) -> AsyncGenerator[tuple[Question, str, Score], None]:
        """Yield each answer's question, its text and its score as judges decide.

        The answers are consumed one by one, so that few of them are in memory.
        """

        async def judge(answer: tuple[Question, str]) -> tuple[Question, str, Score] | None:
            if self.halted is not None:
                return None
            question, text = answer
            try:
                score = await self.scorer.score(question, DaemonResponse(text=text, kind="answer"))
            except HaltingError as error:
                self.halted = merge_halts(self.halted, error)
                return None
            return question, text, score

        async with aclosing(work_through(iter(answers), judge, _AT_ONCE)) as scores:
            async for each in scores:
                if each is not None:
                    yield each


def failure_lines(failures: Iterable[tuple[str, str]]) -> list[str]:
    """One line for each kind of failure, with its count and first occurrence.

    `failures` are questions with reasons of the form `kind: message`.
    """
    reasons = [(question, *reason.partition(":")) for question, reason in failures]
    kinds = Counter(kind for _, kind, _, _ in reasons)
    first = {kind: f"{name}:{message}" for name, kind, _, message in reversed(reasons)}
    return [f"{count} of {kind}, the first {first[kind]}" for kind, count in kinds.most_common()]
