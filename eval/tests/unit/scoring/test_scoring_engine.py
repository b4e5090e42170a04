"""The scoring engine: who is asked, what stops it, and what it says of what was not asked."""

import asyncio
from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from memconform.datasets.question import Question
from memconform.llm.chat import BudgetSpentError, LlmError
from memconform.records import Failure
from memconform.scoring.engine import ScoredAnswer, ScoringEngine, ScoringTask
from memconform.scoring.reader.reader import Reader, Reading
from memconform.scoring.scorer import DaemonResponse, Score
from memconform.scoring.statuses import QuestionStatus, failure_lines, judge_failure


def _spent() -> BudgetSpentError:
    return BudgetSpentError("the budget is spent", code="budget_spent", hint="raise it")


class _Judge:
    """Passes every answer but `wrong`; the budget ends at `spent`."""

    name = "judge"
    in_process = False

    def __init__(self) -> None:
        self.asked: list[str] = []

    def require_scorable(self, questions: Iterable[Question]) -> None:
        pass

    async def score(self, _question: Question, response: DaemonResponse) -> Score:
        self.asked.append(response.text)
        if response.text == "spent":
            raise _spent()
        if response.text == "wrong":
            return Score(0.0, QuestionStatus.INCORRECT)
        return Score(1.0, QuestionStatus.CORRECT)


class _Reader:
    """Answers by what it is shown, or fails as that says."""

    def __init__(self) -> None:
        self.asked: list[object] = []

    async def read(
        self, _question: str, _date: str | None, passages: Sequence[Any] | None, _error_in: object
    ) -> Reading:
        self.asked.append(passages)
        if passages == ("no budget",):
            return Reading(failure=_spent(), halted=True)
        if passages == ("refused",):
            return Reading(failure=LlmError("refused", code="llm_refused", hint=""))
        return Reading(answer="nothing" if passages is None else passages[0], served_model="m")


def _question(number: int) -> Question:
    return Question(id=f"q{number}", question="Who?", answers=("Ann",))


def _task(number: int, **more: Any) -> ScoringTask[int]:
    return ScoringTask(key=number, question=_question(number), **more)


def _score(engine: ScoringEngine, *tasks: ScoringTask[int]) -> list[ScoredAnswer[int]]:
    async def score() -> list[ScoredAnswer[int]]:
        return [answer async for answer in engine.score_all(tasks, 1)]

    return asyncio.run(score())


def test_an_answer_that_exists_is_judged_and_no_reader_is_asked() -> None:
    judge, reader = _Judge(), _Reader()
    engine = ScoringEngine(judge, cast("Reader", reader))
    right, wrong = _score(engine, _task(1, text="right"), _task(2, text="wrong"))
    assert right.score == Score(1.0, QuestionStatus.CORRECT)
    assert wrong.score == Score(0.0, QuestionStatus.INCORRECT)
    assert (right.reading, right.reader_ms, reader.asked) == (None, None, [])


def test_what_the_reader_answers_is_judged() -> None:
    judge, reader = _Judge(), _Reader()
    engine = ScoringEngine(judge, cast("Reader", reader))
    without, shown = _score(engine, _task(1), _task(2, passages=("shown",)))
    assert [without.text, shown.text] == judge.asked == ["nothing", "shown"]
    assert reader.asked == [None, ("shown",)]
    assert shown.reading is not None
    assert shown.reading.served_model == "m"


def test_a_question_that_the_reader_could_not_answer_is_not_judged() -> None:
    judge = _Judge()
    engine = ScoringEngine(judge, cast("Reader", _Reader()))
    failed, next_one = _score(engine, _task(1, passages=("refused",)), _task(2))
    assert failed.failure == Failure(code="llm_refused", message="refused")
    assert (failed.score, failed.text) == (None, None)
    assert next_one.score is not None
    assert engine.halted is None


@pytest.mark.parametrize("first", [{"text": "spent"}, {"passages": ("no budget",)}])
def test_nobody_is_asked_after_an_error_that_concerns_all_calls(first: dict[str, Any]) -> None:
    judge, reader = _Judge(), _Reader()
    engine = ScoringEngine(judge, cast("Reader", reader))
    answers = _score(engine, _task(1, **first), _task(2), _task(3, text="right"))
    asked = len(judge.asked) + len(reader.asked)
    assert asked == 1
    assert [answer.failure and answer.failure.code for answer in answers] == ["budget_spent"] * 3
    assert not any(answer.score for answer in answers)
    assert engine.halted is not None


def test_a_scorer_that_calls_nobody_goes_on_after_the_reader_has_ended() -> None:
    judge = _Judge()
    judge.in_process = True
    engine = ScoringEngine(judge, cast("Reader", _Reader()))
    ended, later = _score(engine, _task(1, passages=("no budget",)), _task(2, text="right"))
    assert ended.score is None
    assert later.score is not None


def test_a_task_that_failed_before_is_passed_on_unscored() -> None:
    judge = _Judge()
    failure = Failure(code="error_text", message="HTTP 500")
    [answer] = _score(ScoringEngine(judge), _task(1, text="HTTP 500", failure=failure))
    assert (answer.text, answer.failure, answer.score) == ("HTTP 500", failure, None)
    assert not judge.asked


def test_a_task_without_an_answer_needs_a_reader() -> None:
    with pytest.raises(ValueError, match="there is no reader"):
        _score(ScoringEngine(_Judge()), _task(1))


def test_only_calls_that_were_made_have_a_time() -> None:
    def vote(*, cached: bool) -> dict[str, object]:
        return {
            "model": "m", "served_model": "", "verdict": "correct", "score": 1.0, "reason": "",
            "verdicts": ["correct"], "cached": cached, "input_tokens": 0, "output_tokens": 0,
            "cost_usd": 0.0,
        }  # fmt: skip

    async def score(_: Question, response: DaemonResponse) -> Score:
        detail: dict[str, Any] = {"judges": [vote(cached=response.text == "cached")]}
        return Score(1.0, QuestionStatus.CORRECT, detail=detail)

    judge: Any = SimpleNamespace(in_process=False, score=score)
    cached, made = _score(ScoringEngine(judge), _task(1, text="cached"), _task(2, text="made"))
    assert cached.judge_ms is None
    assert made.judge_ms is not None
    assert [len(cached.votes), len(made.votes)] == [1, 1]


def test_failures_are_counted_by_kind_with_the_first_of_each() -> None:
    failures = [
        ("timeout", "q3", "after 5 s"),
        judge_failure("q1", "llm_rejected: cut off"),
        ("timeout", "q9", "after 6 s"),
    ]
    assert failure_lines(failures) == [
        "2 of timeout, the first q3: after 5 s",
        "1 of llm_rejected, the first q1: cut off",
    ]
