from dataclasses import replace

from memconform.datasets.question_row import QuestionRow
from memconform.records import Failure
from memconform.runs.aggregation import aggregate_attempts
from memconform.runs.results import CallTimings, QuestionResult
from memconform.runs.stages import (
    AnswerRecord,
    AttemptRecords,
    JudgementRecord,
    RetrievalRecord,
)
from memconform.scoring.statuses import QuestionStatus

_QUESTION = QuestionRow.model_validate({"id": "q", "question": "?", "tags": ["t"]}).to_question()


def _measured(attempt: int, verdict: QuestionStatus, latency: float = 5.0) -> AttemptRecords:
    timings = CallTimings(first_byte=1, first_event=None, first_delta=None, done=latency)
    score = float(verdict is QuestionStatus.CORRECT)
    return AttemptRecords(
        0,
        attempt,
        attempt,
        RetrievalRecord(row=0, attempt=attempt, mode="bm25", ranking=[], trace={}, timings=timings),
        AnswerRecord(row=0, attempt=attempt, text=f"text {attempt}", citations=[]),
        JudgementRecord(row=0, attempt=attempt, id="q", verdict=verdict, score=score, error=None),
    )


def _failed(attempt: int) -> AttemptRecords:
    error = Failure(code="c", message="m")
    judgement = JudgementRecord(
        row=0, attempt=attempt, id="q", verdict=QuestionStatus.TIMEOUT, score=None, error=error
    )
    return AttemptRecords(0, attempt, attempt, judgement=judgement)


def _aggregate(*attempts: AttemptRecords) -> QuestionResult:
    return aggregate_attempts(_QUESTION, attempts, len(attempts))


def test_one_attempt() -> None:
    result = _aggregate(_measured(0, QuestionStatus.CORRECT))
    assert (result.verdict, result.passed, result.score) == (QuestionStatus.CORRECT, True, 1.0)
    assert (result.answer, result.latency_ms, result.attempts) == ("text 0", 5.0, [])


def test_a_result_names_the_cluster_of_its_question() -> None:
    question = replace(_QUESTION, cluster="talk")
    measured = aggregate_attempts(question, [_measured(0, QuestionStatus.CORRECT)], 1)
    missing = aggregate_attempts(question, [], 1)
    assert (measured.cluster, missing.cluster) == ("talk", "talk")
    assert _aggregate(_failed(0)).cluster is None


def test_a_failure_has_no_score() -> None:
    result = _aggregate(_failed(0))
    assert (result.verdict, result.passed, result.score) == (QuestionStatus.TIMEOUT, False, None)
    assert result.error == Failure(code="c", message="m")


def test_the_score_of_several_attempts_is_their_mean() -> None:
    two_of_three = (QuestionStatus.CORRECT, QuestionStatus.INCORRECT, QuestionStatus.CORRECT)
    result = _aggregate(*(_measured(n, verdict) for n, verdict in enumerate(two_of_three)))
    assert (result.verdict, result.passed) == (QuestionStatus.CORRECT, True)
    assert result.score == 2 / 3
    assert [attempt.verdict for attempt in result.attempts] == list(two_of_three)


def test_one_unmeasured_attempt_leaves_the_question_unmeasured() -> None:
    result = _aggregate(_measured(0, QuestionStatus.CORRECT), _failed(1))
    assert (result.verdict, result.passed, result.score) == (QuestionStatus.TIMEOUT, False, None)


def test_a_question_with_missing_attempts_is_not_run() -> None:
    result = aggregate_attempts(_QUESTION, [_measured(0, QuestionStatus.CORRECT)], 2)
    assert (result.verdict, result.score) == (QuestionStatus.NOT_RUN, None)


def test_abstentions_count_only_if_every_attempt_abstains() -> None:
    abstained = QuestionStatus.ABSTAINED
    assert _aggregate(*(_measured(n, abstained) for n in range(2))).verdict is abstained
    mixed = _aggregate(_measured(0, abstained), _measured(1, QuestionStatus.INCORRECT))
    assert mixed.verdict is QuestionStatus.INCORRECT


def test_an_answer_that_was_never_judged_is_not_run() -> None:
    unjudged = _measured(0, QuestionStatus.CORRECT)
    unjudged.judgement = None
    result = _aggregate(unjudged)
    assert (result.verdict, result.score, result.answer) == (QuestionStatus.NOT_RUN, None, None)
