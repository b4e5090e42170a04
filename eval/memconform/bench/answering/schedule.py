"""Has every question read and judged in every arm, and yields the answers."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from memconform.bench.answering.plan import (
    AnswerPlan,
    AnswerTask,
    Arm,
    is_gold_shown,
    shown_passages,
    unanswerable,
)
from memconform.bench.answering.records import ArmAnswer
from memconform.bench.answering.report_builder import AnswerReportBuilder, AnswersFinished
from memconform.concurrency import interruption
from memconform.records import Failure
from memconform.scoring.engine import ScoredAnswer, ScoringEngine, ScoringTask
from memconform.scoring.reader.passages import PassageSelection
from memconform.scoring.reader.prompts import DECLINES
from memconform.scoring.statuses import QuestionStatus
from memconform.storage.folders import RunFolder

_AT_ONCE = 32
"""Questions in progress; each provider's limiter caps its calls."""


async def answer_questions(
    plan: AnswerPlan, folder: RunFolder
) -> AsyncGenerator[ArmAnswer | AnswersFinished, None]:
    """Answer and judge, one arm after another; the last event contains the report.

    An error that concerns all calls, such as a spent budget, ends its arm, whose other questions
    are not measured. Later arms are tried: some need no call, or only cached ones. Everything that
    was paid for is in the cache of replies, from which the same command continues.

    Raises:
        UsageError: for rankings of another benchmark (`unknown_item`).
        ResultsError: if results cannot be written.
    """
    builder = AnswerReportBuilder(plan, folder.path.name)
    try:
        for arm in plan.arms:
            async with aclosing(_answers(plan, arm, builder)) as answers:
                async for answer in answers:
                    builder.add(answer)
                    yield answer
    except asyncio.CancelledError:
        builder.interrupted = interruption("the same command")
    yield builder.write(folder)


async def _answers(
    plan: AnswerPlan, arm: Arm, builder: AnswerReportBuilder
) -> AsyncGenerator[ArmAnswer, None]:
    engine = ScoringEngine(plan.judge, plan.reader)
    tasks = (_scoring_task(plan, arm, task) for task in plan.tasks)
    async with aclosing(engine.score_all(tasks, _AT_ONCE)) as answered:
        async for each in answered:
            if each.reading is not None:
                builder.count(arm.name, each.reading)
            # What was not reached is listed with the error that ended the arm.
            if each.reading or each.task.failure or each.text is not None:
                yield _record(arm, each)
    if engine.halted is not None:
        builder.errors[arm.name] = engine.halted


_Shown = tuple[AnswerTask, PassageSelection]


def _scoring_task(plan: AnswerPlan, arm: Arm, task: AnswerTask) -> ScoringTask[_Shown]:
    """What the reader is shown, or the answer if it needs no reader."""
    question, nothing = task.question, PassageSelection((), 0)
    if (failure := unanswerable(arm, task)) is not None:
        return ScoringTask(key=(task, nothing), question=question, failure=failure)
    if arm.is_daemons_own or arm.control == "always-abstain":
        text = arm.own_answer(question.id) if arm.is_daemons_own else DECLINES
        return ScoringTask(key=(task, nothing), question=question, text=text)
    conversation = plan.conversations[task.haystack]
    settings = plan.settings
    shown = shown_passages(arm, task, conversation, settings.level, settings.reader)
    return ScoringTask(
        key=(task, shown or nothing),
        question=question,
        passages=None if shown is None else shown.passages,
    )


def _record(arm: Arm, answer: ScoredAnswer[_Shown]) -> ArmAnswer:
    task, shown = answer.task.key
    if answer.task.failure is not None:
        return ArmAnswer.unanswered(arm.name, task.question, answer.task.failure)
    about: dict[str, Any] = {
        "shown": [passage.id for passage in shown.passages],
        "left_out": shown.left_out,
        "gold_shown": None if arm.is_daemons_own else is_gold_shown(task, shown),
    }
    failure = answer.failure or Failure(code="", message="")
    if answer.text is None:
        return ArmAnswer.unanswered(arm.name, task.question, failure, **about)
    return ArmAnswer(
        arm=arm.name,
        question=task.question.id,
        text=task.question.question,
        category=task.question.category,
        status=answer.score.status if answer.score else QuestionStatus.NOT_RUN,
        code=failure.code,
        reason=answer.score.reason if answer.score else failure.message,
        answer=answer.text,
        served_model=answer.reading.served_model if answer.reading else "",
        votes=answer.votes,
        **about,
    )
