"""Judges stored answers, one rubric after another, and yields the judgements."""

from collections.abc import AsyncGenerator, Collection
from contextlib import aclosing
from pathlib import Path

from memconform.bench.qa.plan import QaPlan, RubricRun
from memconform.bench.qa.records import Judgement, QaJournalHeader, QaSettings
from memconform.bench.qa.report_builder import QaFinished, QaReportBuilder
from memconform.bench.verdict_journal import journaled, read_verdicts
from memconform.datasets.question import Question
from memconform.llm.replies import without_reasoning
from memconform.scoring.engine import ScoringEngine, ScoringTask
from memconform.scoring.judge.longmemeval import contains_yes
from memconform.scoring.judge.records import JudgeVote, votes_of
from memconform.scoring.scorer import Score
from memconform.storage.folders import RunFolder


def read_judgements(path: Path, settings: QaSettings) -> dict[tuple[str, str], Judgement]:
    """The measured judgements of an earlier scoring, by rubric and question.

    Those that failed are absent, so that they are asked for again.

    Raises:
        UsageError: as `read_verdicts`.
    """
    records = read_verdicts(
        path,
        QaJournalHeader,
        Judgement,
        settings,
        same="the data, the hypotheses, --errata, --partial, the rubrics with their prompts, and"
        " the judges",
    )
    return {(each.rubric, each.question): each for each in records if each.status.measured}


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
    builder = QaReportBuilder(plan, folder.path.name)
    header = QaJournalHeader(run_id=folder.path.name, settings=plan.settings)
    judged = _judged(plan, earlier.keys(), builder)
    async with aclosing(journaled(folder, header, earlier.values(), judged, builder)) as events:
        async for event in events:
            yield event


async def _judged(
    plan: QaPlan, earlier: Collection[tuple[str, str]], builder: QaReportBuilder
) -> AsyncGenerator[Judgement, None]:
    """Judge what has no judgement, a rubric at a time, until an error that concerns all calls."""
    answers = plan.selection.hypotheses.answers
    for name, rubric in plan.rubrics.items():
        engine = ScoringEngine(rubric.scorer)
        pending = (
            ScoringTask(key=name, question=question, text=answers[question.id])
            for question in plan.selection.answered
            if (name, question.id) not in earlier
        )
        async with aclosing(engine.score_all(pending)) as answered:
            async for each in answered:
                if each.score is not None:
                    answer = each.task.text or ""
                    yield _judgement(name, rubric, each.task.question, answer, each.score)
        if engine.halted is not None:
            builder.halted, builder.halted_rubric = engine.halted, name
            return


def _judgement(
    name: str, rubric: RubricRun, question: Question, answer: str, score: Score
) -> Judgement:
    votes = votes_of(score.detail)
    return Judgement(
        rubric=name,
        question=question.id,
        text=question.question,
        answer=answer,
        category=question.category,
        status=score.status,
        score=score.value,
        reason=score.reason,
        votes=votes,
        contains_yes=_contains_yes(votes) if rubric.prompts == "official" else None,
    )


def _contains_yes(votes: list[JudgeVote]) -> bool | None:
    """The released script's label; None without one reply, of one judge that was asked once.

    Reasoning is not part of the reply: with the services that the script was written for it never
    was, and the letters occur in most reasoning.
    """
    if len(votes) != 1 or len(votes[0].verdicts) > 1:
        return None
    [vote] = votes
    reply = vote.reason if vote.verdict is not None else vote.invalid_reply
    return contains_yes(without_reasoning(reply)) if reply else None
