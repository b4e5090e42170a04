"""Aggregates the attempts at a question into its result."""

from collections.abc import Iterable
from statistics import fmean

from memconform.datasets.question import Question
from memconform.runs.results import Attempt, QuestionResult
from memconform.runs.stages import AttemptRecords, JudgementRecord
from memconform.scoring.judge.records import JudgeVote
from memconform.scoring.statuses import PASS_THRESHOLD, QuestionStatus


def aggregate_attempts(
    question: Question, attempts: Iterable[AttemptRecords], repeat: int
) -> QuestionResult:
    """Aggregate a question's attempts; `not_run` if fewer than `repeat` of them were judged.

    The score is the mean over attempts. One attempt that was not measured leaves the whole question
    unmeasured.
    """
    judged = [(attempt, attempt.judgement) for attempt in attempts if attempt.judgement is not None]
    if len(judged) < repeat:
        return QuestionResult.unmeasured(question, QuestionStatus.NOT_RUN)
    failed = next((pair for pair in judged if not pair[0].measured), None)
    shown, judgement = failed or judged[0]
    score = None if failed else fmean(judgement.score or 0.0 for _, judgement in judged)
    passed = score is not None and score >= PASS_THRESHOLD
    retrieval, answer = shown.retrieval, shown.answer
    return QuestionResult(
        id=question.id,
        question=question.question,
        tags=question.tags,
        question_date=question.question_date,
        cluster=question.cluster,
        verdict=judgement.verdict if failed else _verdict(judged, passed=passed),
        passed=passed,
        score=score,
        answer=answer.text if answer else None,
        redacted=answer.redacted if answer else False,
        latency_ms=shown.latency_ms,
        timings=retrieval.timings if retrieval else None,
        citations=answer.citations if answer else [],
        ranking=retrieval.ranking if retrieval else [],
        null_chunks=retrieval.null_chunks if retrieval else False,
        trace=retrieval.trace if retrieval else None,
        error=judgement.error,
        reason=judgement.reason,
        judges=[
            JudgeVote.model_validate(vote | {"attempt": number})
            for number, (_, judgement) in enumerate(judged)
            for vote in judgement.detail.get("judges", ())
        ],
        first_hit=retrieval.first_hit if retrieval else None,
        seen=retrieval.seen if retrieval else None,
        attempts=[
            Attempt(verdict=judgement.verdict, score=judgement.score, latency_ms=attempt.latency_ms)
            for attempt, judgement in judged
        ]
        if repeat > 1
        else [],
    )


def _verdict(
    judged: list[tuple[AttemptRecords, JudgementRecord]], *, passed: bool
) -> QuestionStatus:
    if passed:
        return QuestionStatus.CORRECT
    verdicts = {judgement.verdict for _, judgement in judged}
    return (
        QuestionStatus.ABSTAINED
        if verdicts == {QuestionStatus.ABSTAINED}
        else QuestionStatus.INCORRECT
    )
