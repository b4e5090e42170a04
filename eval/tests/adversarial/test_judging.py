"""Judgements run concurrently with questions, are resumed on their own, and are never invented."""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from memconform.datasets.question import Question
from memconform.runs import question_runner
from memconform.runs.journal import read_attempts
from memconform.runs.judgement_queue import JudgementQueue
from memconform.runs.plan import Plan
from memconform.runs.rescore import rescore
from memconform.scoring.exact import ExactScorer
from memconform.scoring.scorer import DaemonResponse, Score
from memconform.scoring.statuses import QuestionStatus
from tests.adversarial.inprocess import (
    QUESTIONS,
    TRUTH,
    FaultyRun,
    plan_of,
    run_plan,
    write_dataset,
)
from tests.conftest import WAIT_SECONDS


class _Service:
    """A slow scorer, like one that asks a model."""

    name = "exact"
    in_process = False

    def __init__(self, *, waits_for: int = 0) -> None:
        self._exact = ExactScorer()
        self._waits_for = waits_for
        self.asked: list[str] = []
        self.all_asked = asyncio.Event()
        self.released = asyncio.Event()

    def require_scorable(self, questions: Iterable[Question]) -> None:
        self._exact.require_scorable(questions)

    async def score(self, question: Question, response: DaemonResponse) -> Score:
        self.asked.append(question.id)
        if len(self.asked) >= self._waits_for:
            self.all_asked.set()
        await self.released.wait()
        return await self._exact.score(question, response)


class _Failing(_Service):
    async def score(self, question: Question, response: DaemonResponse) -> Score:
        if question.id == "q3":
            return Score(None, QuestionStatus.JUDGE_ERROR, "the service said nothing twice")
        return await self._exact.score(question, response)


class _LastFirst(_Service):
    def __init__(self) -> None:
        super().__init__()
        self._answered = [asyncio.Event() for _ in range(QUESTIONS)]

    async def score(self, question: Question, response: DaemonResponse) -> Score:
        self.asked.append(question.id)
        turn = len(self.asked)
        if turn < QUESTIONS:
            await self._answered[turn].wait()
        score = await self._exact.score(question, response)
        self._answered[turn - 1].set()
        return score


class _Contradicting(_Service):
    async def score(self, question: Question, response: DaemonResponse) -> Score:
        del question, response
        await asyncio.sleep(0)
        return Score(0.0, QuestionStatus.CORRECT)


@pytest.fixture(params=["search-retrieve-only", "ask-basic"])
def make_plan(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[_Service], Plan]:
    dataset = write_dataset(tmp_path)

    def make(scorer: _Service) -> Plan:
        plan = plan_of(FaultyRun((), request.param, 1), dataset, tmp_path)
        return replace(plan, scorer=scorer)

    return make


def _journal(plan: Plan) -> Path:
    [journal] = plan.output.glob("runs/*/journal.jsonl")
    return journal


async def test_no_question_waits_for_the_judgement_of_another(
    make_plan: Callable[[_Service], Plan],
) -> None:
    """With one question in flight, the judge answers only once all questions were asked."""
    service = _Service(waits_for=QUESTIONS)
    running = asyncio.create_task(run_plan(make_plan(service)))
    async with asyncio.timeout(WAIT_SECONDS):
        await service.all_asked.wait()
        service.released.set()
        result = await running
    assert {question.id: question.verdict.value for question in result.questions} == TRUTH


@pytest.mark.parametrize("delay", [0.0, 0.01])
async def test_answers_of_an_interrupted_run_are_judged_and_not_asked_again(
    make_plan: Callable[[_Service], Plan], delay: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nearly all was asked again: nothing was settled while the judge was waited for.

    An interruption leaves no time here: on a busy machine, two seconds were too short for one
    question, whose answer was not yet confirmed.
    """
    # short limit: all is settled before it begins
    monkeypatch.setattr(question_runner, "_LAST_SECONDS", 0.01)
    waits, drain = asyncio.Event(), JudgementQueue.drain

    async def wait(judging: JudgementQueue) -> None:
        waits.set()
        await drain(judging)

    monkeypatch.setattr(JudgementQueue, "drain", wait)
    plan = make_plan(service := _Service(waits_for=QUESTIONS))
    running = asyncio.create_task(run_plan(plan, delay=delay))
    async with asyncio.timeout(WAIT_SECONDS):
        await service.all_asked.wait()
        await waits.wait()
        running.cancel()
        with suppress(asyncio.CancelledError):
            ended = await running
            assert {question.verdict for question in ended.questions} == {QuestionStatus.NOT_RUN}
    interrupted = _journal(plan)
    left = list(read_attempts(interrupted))
    answers = {attempt.row: attempt.retrieval for attempt in left if attempt.judgement is None}
    assert len(answers) == QUESTIONS
    again = make_plan(fresh := _Service())
    fresh.released.set()
    result = await run_plan(replace(again, resumed=interrupted))
    assert {question.id: question.verdict.value for question in result.questions} == TRUTH
    assert sorted(fresh.asked) == sorted(TRUTH)
    # Equal to the millisecond, so these are the earlier answers.
    resumed = read_attempts(_journal(again))
    assert {attempt.row: attempt.retrieval for attempt in resumed} == answers


async def test_a_judge_failure_is_not_a_low_score_and_is_retried(
    make_plan: Callable[[_Service], Plan],
) -> None:
    plan = make_plan(_Failing())
    result = await run_plan(plan)
    [failed] = [question for question in result.questions if not question.verdict.measured]
    assert (failed.id, failed.verdict, failed.score) == ("q3", QuestionStatus.JUDGE_ERROR, None)
    assert failed.error is not None
    assert failed.error.message == "the service said nothing twice"
    assert failed.answer
    again = make_plan(service := _Service())
    service.released.set()
    mended = await run_plan(replace(again, resumed=_journal(plan)))
    assert {question.id: question.verdict.value for question in mended.questions} == TRUTH
    assert service.asked == ["q3"]


async def test_a_score_that_contradicts_itself_ends_the_run(
    make_plan: Callable[[_Service], Plan],
) -> None:
    with pytest.raises(ValueError, match="correct contradicts score 0"):
        await run_plan(make_plan(_Contradicting()))


async def test_a_crashing_scorer_loses_no_answer(make_plan: Callable[[_Service], Plan]) -> None:
    class _Breaks(_Service):
        async def score(self, question: Question, response: DaemonResponse) -> Score:
            if question.id == f"q{QUESTIONS - 1}":
                raise KeyError("no such thing")
            return await self._exact.score(question, response)

    plan = make_plan(_Breaks())
    with pytest.raises(KeyError):
        await run_plan(plan, delay=0.05)
    left = list(read_attempts(_journal(plan)))
    assert sum(attempt.measured for attempt in left) == QUESTIONS - 1
    assert [attempt.lacks_judgement for attempt in left].count(True) == 1


async def test_a_rescore_keeps_the_order_of_attempts_whichever_is_judged_first(
    make_plan: Callable[[_Service], Plan], tmp_path: Path
) -> None:
    """Attempts are numbered as they are copied: the second judged first would become the first."""
    plan = make_plan(service := _Service())
    service.released.set()
    await run_plan(plan)
    journal = _journal(plan)
    ended = await rescore(
        journal,
        output=tmp_path / "again",
        dataset=None,
        scorer=_LastFirst(),
        floors=plan.floors,
        command=(),
    )
    before, after = (
        [(attempt.row, attempt.retrieval) for attempt in read_attempts(path)]
        for path in (journal, ended.result.with_name("journal.jsonl"))
    )
    assert after == before
    assert len(after) == QUESTIONS
