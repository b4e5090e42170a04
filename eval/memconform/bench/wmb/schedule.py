"""Judges the memories of stored answers, and yields the verdicts."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

from memconform.bench.verdict_journal import journaled, read_verdicts
from memconform.bench.wmb.plan import WmbPlan
from memconform.bench.wmb.records import WmbJournalHeader, WmbSettings, WmbVerdict
from memconform.bench.wmb.report_builder import WmbFinished, WmbReportBuilder
from memconform.bench.wmb.stored_answers import memories_digest
from memconform.datasets.question import Question
from memconform.scoring.engine import ScoringEngine, ScoringTask
from memconform.scoring.judge.records import votes_of
from memconform.scoring.scorer import Score
from memconform.storage.folders import RunFolder


def read_wmb_verdicts(path: Path, settings: WmbSettings) -> dict[tuple[str, str], WmbVerdict]:
    """The verdicts of an earlier scoring, by question and digest; failed ones are absent.

    Raises:
        UsageError: as `read_verdicts`.
    """
    records = read_verdicts(
        path,
        WmbJournalHeader,
        WmbVerdict,
        settings,
        same="the questions, the answers, the prompts and the judges",
    )
    return {(each.question, each.memories): each for each in records if each.status.measured}


async def score_wmb(
    plan: WmbPlan, folder: RunFolder
) -> AsyncGenerator[WmbVerdict | WmbFinished, None]:
    """Judge what each profile needs; the last event contains the report.

    If the budget is spent, the service fails for good, or the iterating task is cancelled, the
    scores are bounds. What was paid for is in the journal.

    Raises:
        UsageError: if the journal to continue is another scoring's, or the answers change.
        ResultsError: if results cannot be written.
    """
    earlier = {} if plan.resumed is None else read_wmb_verdicts(plan.resumed, plan.settings)
    builder = WmbReportBuilder(plan, folder.path.name)
    header = WmbJournalHeader(run_id=folder.path.name, settings=plan.settings)
    judged = _judged(plan, set(earlier), builder)
    async with aclosing(journaled(folder, header, earlier.values(), judged, builder)) as events:
        async for event in events:
            yield event


async def _judged(
    plan: WmbPlan, earlier: set[tuple[str, str]], builder: WmbReportBuilder
) -> AsyncGenerator[WmbVerdict, None]:
    """Judge what has no verdict, several at a time, until an error that concerns all calls."""
    engine = ScoringEngine(plan.scorer)
    pending = (
        ScoringTask(key=text, question=question, text=text)
        for question, text in plan.texts(earlier)
    )
    async with aclosing(engine.score_all(pending)) as answered:
        async for each in answered:
            if each.score is not None:
                yield _verdict(each.task.question, each.task.key, each.score)
    builder.halted = engine.halted


def _verdict(question: Question, text: str, score: Score) -> WmbVerdict:
    votes = votes_of(score.detail)
    return WmbVerdict(
        question=question.id,
        memories=memories_digest(text),
        status=score.status,
        reason=score.reason,
        votes=votes,
    )
