"""From the records of a journal to the result of a question."""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean

from memconform.datasets.model import Question
from memconform.runs.journal import AnswerRecord, JudgementRecord, RetrievalRecord, StageRecord
from memconform.runs.results import Attempt, QuestionResult
from memconform.scoring.verdicts import PASS_THRESHOLD, Verdict


@dataclass(slots=True)
class _Trial:
    judgement: JudgementRecord
    retrieval: RetrievalRecord | None = None
    answer: AnswerRecord | None = None

    @property
    def latency_ms(self) -> float | None:
        return self.retrieval.timings.done if self.retrieval else None


def fold(question: Question, records: Iterable[StageRecord], repeat: int) -> QuestionResult:
    """The result of a question from the records of its attempts; none at all is `not_run`.

    Of several attempts, one that was not measured leaves the question unmeasured; else its score
    is their mean.
    """
    trials = _trials(records)
    if len(trials) < repeat:
        return unasked(question, Verdict.NOT_RUN)
    failed = next((trial for trial in trials if not trial.judgement.verdict.measured), None)
    shown = failed or trials[0]
    score = None if failed else fmean(trial.judgement.score or 0.0 for trial in trials)
    passed = score is not None and score >= PASS_THRESHOLD
    retrieval, answer = shown.retrieval, shown.answer
    return QuestionResult(
        id=question.id,
        question=question.question,
        tags=question.tags,
        verdict=shown.judgement.verdict if failed else _verdict(trials, passed=passed),
        passed=passed,
        score=score,
        answer=answer.text if answer else None,
        redacted=answer.redacted if answer else False,
        latency_ms=shown.latency_ms,
        timings=retrieval.timings if retrieval else None,
        citations=answer.citations if answer else [],
        ranking=retrieval.ranking if retrieval else [],
        trace=retrieval.trace if retrieval else None,
        error=shown.judgement.error,
        first_hit=retrieval.first_hit if retrieval else None,
        seen=retrieval.seen if retrieval else None,
        attempts=[
            Attempt(
                verdict=trial.judgement.verdict,
                score=trial.judgement.score,
                latency_ms=trial.latency_ms,
            )
            for trial in trials
        ]
        if repeat > 1
        else [],
    )


def unasked(question: Question, verdict: Verdict) -> QuestionResult:
    """The result of a question that was never put, or whose attempts are not complete."""
    return QuestionResult.unmeasured(question, verdict)


def _trials(records: Iterable[StageRecord]) -> list[_Trial]:
    trials = []
    retrieval: RetrievalRecord | None = None
    answer: AnswerRecord | None = None
    for record in records:
        match record:
            case RetrievalRecord():
                retrieval = record
            case AnswerRecord():
                answer = record
            case JudgementRecord():
                trials.append(_Trial(record, retrieval, answer))
                retrieval = answer = None
    return trials


def _verdict(trials: list[_Trial], *, passed: bool) -> Verdict:
    if passed:
        return Verdict.CORRECT
    verdicts = {trial.judgement.verdict for trial in trials}
    return Verdict.ABSTAINED if verdicts == {Verdict.ABSTAINED} else Verdict.INCORRECT
