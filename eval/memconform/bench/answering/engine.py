"""Has every question read and judged in every arm, and yields the answers."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any

from memconform.bench.answering.plan import (
    AnswerPlan,
    AnswerTask,
    Arm,
    is_gold_shown,
    shown_passages,
    unanswerable,
)
from memconform.bench.answering.records import AnswerRecord
from memconform.bench.answering.report_builder import AnswerReportBuilder, AnswersFinished
from memconform.errors import MemconformError
from memconform.llm.chat import HaltingError
from memconform.reading.passages import PassageSelection
from memconform.reading.prompts import DECLINES
from memconform.reading.reader import Reading
from memconform.records import Failure
from memconform.runs.loop import interruption, work_through
from memconform.scoring.error_text import error_message
from memconform.scoring.judge.records import unfinished_votes, votes_of
from memconform.scoring.scorer import DaemonResponse
from memconform.scoring.statuses import QuestionStatus
from memconform.storage.folders import RunFolder

_AT_ONCE = 32
"""Questions in progress; the door to a provider limits its calls."""


async def answer_questions(
    plan: AnswerPlan, folder: RunFolder
) -> AsyncGenerator[AnswerRecord | AnswersFinished, None]:
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
        builder.interrupted = interruption()
    yield builder.write(folder)


@dataclass(slots=True)
class _ArmState:
    """Whether an arm ended early, and why."""

    error: MemconformError | None = None


async def _answers(
    plan: AnswerPlan, arm: Arm, builder: AnswerReportBuilder
) -> AsyncGenerator[AnswerRecord, None]:
    state = _ArmState()

    async def answer(task: AnswerTask) -> AnswerRecord | None:
        return None if state.error is not None else await _answer(plan, arm, task, builder, state)

    async with aclosing(work_through(iter(plan.tasks), answer, _AT_ONCE)) as answers:
        async for record in answers:
            if record is not None:
                yield record
    if state.error is not None:
        builder.errors[arm.name] = state.error


async def _answer(
    plan: AnswerPlan, arm: Arm, task: AnswerTask, builder: AnswerReportBuilder, state: _ArmState
) -> AnswerRecord:
    """Answer one question in one arm, and have the answer judged."""
    question = task.question
    if (failure := unanswerable(arm, task)) is not None:
        return AnswerRecord.unanswered(arm.name, question, failure)
    shown, reading = await _read(plan, arm, task)
    builder.count(arm.name, reading)
    about: dict[str, Any] = {
        "shown": [passage.id for passage in shown.passages],
        "left_out": shown.left_out,
        "gold_shown": None if arm.is_daemons_own else is_gold_shown(task, shown),
    }
    if reading.answer is None:
        error = reading.failure
        if reading.halted:
            state.error = error
        failure = _failure(error) if error else Failure(code="no_answer", message="")
        return AnswerRecord.unanswered(arm.name, question, failure, **about)
    record = AnswerRecord(
        arm=arm.name,
        question=question.id,
        text=question.question,
        category=question.category,
        status=QuestionStatus.NOT_RUN,
        reason="",
        answer=reading.answer,
        served_model=reading.served_model,
        **about,
    )
    try:
        score = await plan.judge.score(question, DaemonResponse(text=reading.answer, kind="answer"))
    except HaltingError as error:
        state.error = error
        return record.model_copy(
            update={
                "code": error.code,
                "reason": error.message,
                "votes": unfinished_votes(error),
            }
        )
    return record.model_copy(
        update={
            "status": score.status,
            "reason": score.reason,
            "votes": votes_of(score.detail),
        }
    )


async def _read(plan: AnswerPlan, arm: Arm, task: AnswerTask) -> tuple[PassageSelection, Reading]:
    """What the reader is shown, and its answer."""
    if arm.is_daemons_own:
        return PassageSelection((), 0), Reading(answer=arm.own_answer(task.question.id))
    if arm.control == "always-abstain":
        return PassageSelection((), 0), Reading(answer=DECLINES)
    conversation = plan.conversations[task.haystack]
    settings, question = plan.settings, task.question
    shown = shown_passages(arm, task, conversation, settings.level, settings.reader)
    passages = None if shown is None else shown.passages
    reading = await plan.reader.read(
        question.question, question.question_date, passages, partial(error_message, question)
    )
    return shown or PassageSelection((), 0), reading


def _failure(error: MemconformError) -> Failure:
    return Failure(code=error.code, message=error.message)
