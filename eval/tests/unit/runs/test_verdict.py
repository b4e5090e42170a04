"""From counts to exit codes: an outage is not a low score."""

import pytest

from memconform.datasets.question_row import QuestionRow
from memconform.errors import ExitCode, UsageError
from memconform.records import Incident
from memconform.runs.plan import Floor
from memconform.runs.results import Attempt, QuestionResult
from memconform.runs.verdict import Tally, conclude
from memconform.scoring.statuses import QuestionStatus
from memconform.stats.clusters import clustered_wilson
from memconform.stats.intervals import wilson

_FLOOR = (Floor(0.9),)
_DIED = Incident(code="daemon_died", message="m", hint="", excerpt="", exit_code=3)


def _result(verdict: QuestionStatus, tag: str = "t", cluster: str | None = None) -> QuestionResult:
    row = {"id": "q", "question": "?", "tags": [tag], "cluster": cluster}
    question = QuestionRow.model_validate(row).to_question()
    passed = verdict is QuestionStatus.CORRECT
    score = float(passed) if verdict.measured else None
    update = {"verdict": verdict, "passed": passed, "score": score}
    return QuestionResult.unmeasured(question, QuestionStatus.NOT_RUN).model_copy(update=update)


def _tally(*tags: str, **counts: int) -> Tally:
    tally = Tally(tags=frozenset(tags))
    for name, count in counts.items():
        for _ in range(count):
            tally.add(_result(QuestionStatus(name)))
    return tally


@pytest.mark.parametrize(
    ("counts", "code"),
    [
        ({"correct": 20}, ExitCode.OK),
        ({"correct": 18, "incorrect": 2}, ExitCode.OK),
        ({"correct": 17, "incorrect": 3}, ExitCode.FAILED),
        ({"correct": 17, "abstained": 3}, ExitCode.FAILED),
        ({"correct": 18, "daemon_error": 2}, ExitCode.OK),
        ({"correct": 17, "daemon_error": 3}, ExitCode.DAEMON),
        ({"correct": 17, "protocol_error": 3}, ExitCode.DAEMON),
        ({"correct": 17, "timeout": 3}, ExitCode.DAEMON),
        ({"daemon_error": 20}, ExitCode.DAEMON),
        ({"not_run": 20}, ExitCode.DAEMON),
        # Even with every unmeasured question passed it would be 17 of 20.
        ({"correct": 10, "incorrect": 3, "timeout": 7}, ExitCode.FAILED),
        ({"correct": 18, "not_applicable": 50}, ExitCode.OK),
        ({"not_applicable": 3}, ExitCode.NOTHING_SELECTED),
        ({}, ExitCode.NOTHING_SELECTED),
    ],
)
def test_exit_code(counts: dict[str, int], code: ExitCode) -> None:
    assert conclude(_tally(**counts), _FLOOR, None).exit_code is code


def test_a_run_without_measurements_fails_whatever_the_floor() -> None:
    assert conclude(_tally(daemon_error=3), (Floor(0),), None).exit_code is ExitCode.DAEMON
    assert conclude(_tally(daemon_error=3), (), None).exit_code is ExitCode.DAEMON


def test_a_dead_daemon_is_never_a_low_score() -> None:
    conclusion = conclude(_tally(correct=1, incorrect=5, not_run=14), _FLOOR, _DIED)
    assert conclusion.exit_code is ExitCode.DAEMON
    assert conclusion.reasons[0] == "daemon_died: m"


def test_a_spent_budget_is_no_failure_of_the_daemon_even_if_nothing_was_measured() -> None:
    spent = Incident(
        code="budget_spent", message="m", hint="", excerpt="", exit_code=ExitCode.BUDGET
    )
    for counts in ({"not_run": 20}, {"correct": 1, "not_run": 19}):
        conclusion = conclude(_tally(**counts), _FLOOR, spent)
        assert conclusion.exit_code is ExitCode.BUDGET
        assert conclusion.reasons[0] == "budget_spent: m"


def test_unmeasured_questions_are_always_named() -> None:
    conclusion = conclude(_tally(correct=19, timeout=1), _FLOOR, None)
    assert conclusion.exit_code is ExitCode.OK
    assert conclusion.reasons == ("1 of 20 questions were not measured: 1 timeout",)


def test_a_floor_for_a_tag_is_checked_separately() -> None:
    tally = Tally(tags=frozenset({"hard"}))
    for _ in range(18):
        tally.add(_result(QuestionStatus.CORRECT))
    for verdict in (QuestionStatus.CORRECT, QuestionStatus.INCORRECT):
        tally.add(_result(verdict, "hard"))
    conclusion = conclude(tally, (Floor(0.9), Floor(0.8, "hard")), None)
    assert conclusion.exit_code is ExitCode.FAILED
    assert [floor.held for floor in conclusion.floors] == [True, False]
    assert "tag hard 0.500" in conclusion.reasons[0]


def test_a_floor_for_an_unused_tag_is_an_error() -> None:
    tally = _tally("typo", correct=20)
    conclusion = conclude(tally, (Floor(0.9), Floor(0.8, "typo")), None)
    assert conclusion.exit_code is ExitCode.NOTHING_SELECTED


def test_attempts_that_end_differently_are_unstable() -> None:
    attempts = [
        Attempt(verdict=verdict, score=score, latency_ms=1.0)
        for verdict, score in ((QuestionStatus.CORRECT, 1.0), (QuestionStatus.INCORRECT, 0.0))
    ]
    tally = Tally()
    tally.add(_result(QuestionStatus.CORRECT).model_copy(update={"attempts": attempts}))
    assert tally.unstable == 1


@pytest.mark.parametrize(
    ("text", "floor"),
    [("0.9", Floor(0.9)), ("1", Floor(1)), ("tag:a=b=0.5", Floor(0.5, "a=b"))],
)
def test_floors_are_parsed(text: str, floor: Floor) -> None:
    assert Floor.parse(text) == floor


@pytest.mark.parametrize(
    "text", ["", "x", "1.1", "-0.1", "nan", "temporal=0.8", "tag:=0.8", "tag:x="]
)
def test_an_invalid_floor_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="invalid --floor"):
        Floor.parse(text)


def test_the_interval_of_a_pass_rate_counts_conversations() -> None:
    tally, alone = Tally(), Tally()
    for number in range(240):
        verdict = QuestionStatus.CORRECT if number % 12 < 8 else QuestionStatus.INCORRECT
        tally.add(_result(verdict, cluster=f"c{number % 12}"))
        alone.add(_result(verdict))
    assert alone.interval() == wilson(160, 240)
    low, high = tally.interval()
    assert low < alone.interval().low - 0.15
    assert high > alone.interval().high + 0.1


def test_a_question_without_a_cluster_is_one_of_its_own() -> None:
    tally = Tally()
    for number in range(30):
        cluster = f"c{number % 10}" if number < 20 else None
        verdict = QuestionStatus.CORRECT if number % 10 < 6 else QuestionStatus.TIMEOUT
        tally.add(_result(verdict, cluster=cluster))
    tally.add(_result(QuestionStatus.NOT_APPLICABLE, cluster="c0"))
    wanted, _ = clustered_wilson([(2, 2)] * 6 + [(0, 2)] * 4 + [(1, 1)] * 6 + [(0, 1)] * 4)
    assert tally.interval() == pytest.approx(wanted)
