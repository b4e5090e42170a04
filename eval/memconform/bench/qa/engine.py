"""Judges stored answers, one rubric after another, and yields the judgements."""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing

from memconform.bench.qa.journal import read_judgements
from memconform.bench.qa.judging import Judging
from memconform.bench.qa.plan import QaPlan, RubricRun
from memconform.bench.qa.records import JournalHeader, Judgement
from memconform.bench.qa.report_builder import QaFinished, QaReportBuilder
from memconform.datasets.model import Question
from memconform.runs.loop import interruption
from memconform.scoring.judge.longmemeval import contains_yes
from memconform.scoring.judge.records import JudgeVote, votes_of
from memconform.scoring.scorer import Score
from memconform.storage.append_only import AppendOnly
from memconform.storage.folders import RunFolder


async def score_answers(
    plan: QaPlan, folder: RunFolder
) -> AsyncGenerator[Judgement | QaFinished, None]:
    """Judge every answer by every rubric; the last event contains the report.

    If the budget is spent, the service fails for good, or the iterating task is cancelled, the
    report says which answers were not judged. What was paid for is in the journal.

    Raises:
        UsageError: if the journal to continue is another scoring's.
        ResultsError: if results cannot be written.
    """
    earlier = {} if plan.resumed is None else read_judgements(plan.resumed, plan.settings)
    journal = AppendOnly(folder.journal)
    journal.append(JournalHeader(run_id=folder.path.name, settings=plan.settings))
    builder = QaReportBuilder(plan, folder.path.name)
    ended = "not finished"
    try:
        for judgement in earlier.values():
            journal.append(judgement)
            builder.add(judgement)
            yield judgement
        try:
            for name, rubric in plan.rubrics.items():
                answered = plan.selection.answered
                pending = [q for q in answered if (name, q.id) not in earlier]
                async with aclosing(_judged(plan, name, rubric, pending, builder)) as judgements:
                    async for judgement in judgements:
                        journal.append(judgement)
                        builder.add(judgement)
                        yield judgement
                if builder.halted is not None:
                    break
        except asyncio.CancelledError:
            builder.halted = interruption()
        ended = builder.halted.code if builder.halted else "done"
    finally:
        journal.close({"stage": "footer", "ended": ended})
    yield builder.write(folder)


async def _judged(
    plan: QaPlan,
    name: str,
    rubric: RubricRun,
    questions: Iterable[Question],
    builder: QaReportBuilder,
) -> AsyncGenerator[Judgement, None]:
    """Judge answers, several at a time, until an error that concerns all calls."""
    answers = plan.selection.hypotheses.answers
    judging = Judging(rubric.scorer)
    pending = ((question, answers[question.id]) for question in questions)
    async with aclosing(judging.scores(pending)) as scores:
        async for question, _, score in scores:
            yield _judgement(name, rubric, question, score)
    builder.halted = judging.halted
    builder.halted_rubric = name if judging.halted is not None else None


def _judgement(name: str, rubric: RubricRun, question: Question, score: Score) -> Judgement:
    votes = votes_of(score.detail)
    return Judgement(
        rubric=name,
        question=question.id,
        category=question.category,
        status=score.status,
        score=score.value,
        reason=score.reason,
        votes=votes,
        contains_yes=_contains_yes(votes) if rubric.prompts == "official" else None,
    )


def _contains_yes(votes: list[JudgeVote]) -> bool | None:
    """The released script's label; None without one reply, of one judge that was asked once."""
    if len(votes) != 1 or len(votes[0].verdicts) > 1:
        return None
    [vote] = votes
    reply = vote.reason if vote.verdict is not None else vote.invalid_reply
    return contains_yes(reply) if reply else None
