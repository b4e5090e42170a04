"""Has every question read and judged in every arm, and yields the answers."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial

from memconform.bench.answering.plan import AnswerPlan, Arm, Task, is_gold_shown, shown_passages
from memconform.bench.answering.records import AnswerRecord
from memconform.bench.answering.report_builder import AnswerReportBuilder, AnswersFinished
from memconform.datasets.model import Question
from memconform.errors import MemconformError
from memconform.llm.chat import HaltingError
from memconform.reading.passages import Fitted
from memconform.reading.prompts import DECLINES
from memconform.reading.reader import Reading
from memconform.runs.loop import interruption, work_through
from memconform.scoring.error_text import error_message
from memconform.scoring.judge.records import JudgeVote
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
class _Ended:
    """Why an arm ended early."""

    error: MemconformError | None = None


async def _answers(
    plan: AnswerPlan, arm: Arm, builder: AnswerReportBuilder
) -> AsyncGenerator[AnswerRecord, None]:
    ended = _Ended()

    async def answer(task: Task) -> AnswerRecord | None:
        return None if ended.error is not None else await _answer(plan, arm, task, builder, ended)

    async with aclosing(work_through(iter(plan.tasks), answer, _AT_ONCE)) as answers:
        async for record in answers:
            if record is not None:
                yield record
    if ended.error is not None:
        builder.ended[arm.name] = ended.error


async def _answer(
    plan: AnswerPlan, arm: Arm, task: Task, builder: AnswerReportBuilder, ended: _Ended
) -> AnswerRecord:
    """Answer one question in one arm, and have the answer judged."""
    question = task.question
    if arm.row is not None and arm.ranking(question.id) is None:
        reason = "not_retrieved: the bench did not measure what was retrieved for it"
        return AnswerRecord.unanswered(arm.name, question, reason)
    if arm.is_daemons_own and (failure := _without_answer(arm, question)):
        return AnswerRecord.unanswered(arm.name, question, failure)
    shown, reading = await _read(plan, arm, task)
    builder.count(arm.name, reading)
    if reading.answer is None:
        if reading.halted:
            ended.error = reading.failure
        return AnswerRecord.unanswered(arm.name, question, _why(reading.failure))
    record = AnswerRecord(
        arm=arm.name,
        question=question.id,
        category=question.category,
        status=QuestionStatus.NOT_RUN,
        reason="",
        answer=reading.answer,
        served_model=reading.served_model,
        shown=[passage.id for passage in shown.passages],
        left_out=shown.left_out,
        gold_shown=None if arm.is_daemons_own else is_gold_shown(task, shown),
    )
    try:
        score = await plan.judge.score(question, DaemonResponse(text=reading.answer, kind="answer"))
    except HaltingError as error:
        ended.error = error
        return record.model_copy(update={"reason": _why(error)})
    judges = score.detail.get("judges", [])
    votes = judges if isinstance(judges, list) else []
    return record.model_copy(
        update={
            "status": score.status,
            "reason": score.reason,
            "votes": [JudgeVote.model_validate(vote) for vote in votes],
        }
    )


async def _read(plan: AnswerPlan, arm: Arm, task: Task) -> tuple[Fitted, Reading]:
    """What the reader is shown, and its answer."""
    if arm.is_daemons_own:
        record = arm.ranking(task.question.id)
        return Fitted((), 0), Reading(answer=None if record is None else record.answer)
    if arm.control == "always-abstain":
        return Fitted((), 0), Reading(answer=DECLINES)
    conversation = plan.conversations[task.haystack]
    settings, question = plan.settings, task.question
    shown = shown_passages(arm, task, conversation, settings.level, settings.reader)
    passages = None if shown is None else shown.passages
    reading = await plan.reader.read(
        question.question, question.question_date, passages, partial(error_message, question)
    )
    return shown or Fitted((), 0), reading


def _without_answer(arm: Arm, question: Question) -> str:
    """Why the daemon's own reader gave no answer; empty if it did."""
    record = arm.ranking(question.id)
    if record is None:
        return ""
    if record.answer is not None:
        message = error_message(question, record.answer)
        return "" if message is None else f"error_text: {message}"
    failure = record.answer_error
    return "no answer" if failure is None else f"{failure.code}: {failure.message}"


def _why(error: MemconformError | None) -> str:
    return "no answer" if error is None else f"{error.code}: {error.message}"
