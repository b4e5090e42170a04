"""A valid result is never refused for rounding, and an edited one always is."""

import json
import random
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import pytest

from memconform.errors import UsageError
from memconform.reports.overview.overview import Overview
from memconform.scoring.accuracy import estimate
from memconform.scoring.statuses import QuestionStatus
from memconform.stats.intervals import wilson
from memconform.stats.stored_figures import ExactMean, is_same_figure
from tests.run_results import question, write_run
from tests.unit.lme_results import question as lme_question
from tests.unit.lme_results import write_lme

_MOST = 2_000


@pytest.mark.parametrize(
    "totals",
    [
        # One of its ways is what 132 of the 501 scores of 500 questions were dropped for.
        pytest.param((*range(1, 101), 500, _MOST), id="some"),
        pytest.param(range(1, _MOST + 1), id="all", marks=pytest.mark.slow),
    ],
)
def test_no_rate_of_up_to_2000_questions_is_refused_however_it_was_computed(
    totals: Sequence[int],
) -> None:
    for total in totals:
        for passed in range(total + 1):
            rate = passed / total
            for stored in (
                100 * rate / 100,
                (100 * passed / total) / 100,
                1 - (total - passed) / total,
            ):
                if stored != rate:
                    assert is_same_figure(stored, rate)


def test_one_question_more_or_less_is_an_edit() -> None:
    for total in (*range(1, _MOST + 1), 10**5, 10**6):
        for passed in {0, 1, total // 6, total // 2, total - 1}:
            assert not is_same_figure((passed + 1) / total, passed / total)
            assert not is_same_figure(100 * (passed + 1) / total, 100 * passed / total)


def test_the_ends_of_intervals_may_go_through_percent() -> None:
    for total in range(1, 400):
        for passed in range(total + 1):
            low, high = wilson(passed, total)
            percent = estimate(passed / total, (low, high))
            assert is_same_figure(percent.low / 100, low)
            assert is_same_figure(percent.high / 100, high)


@pytest.mark.parametrize(("stated", "actual"), [(None, 0.0), (0.0, None), (0.5, None)])
def test_no_figure_is_not_a_figure(stated: float | None, actual: float | None) -> None:
    assert not is_same_figure(stated, actual)


def test_a_mean_does_not_depend_on_the_order() -> None:
    values = [random.Random(number).random() for number in range(_MOST)]
    means = set()
    for seed in range(20):
        random.Random(seed).shuffle(values)
        mean = ExactMean()
        for value in values:
            mean.add(value)
        means.add(mean.value)
    assert means == {float(sum(map(Fraction, values)) / len(values))}
    assert ExactMean().value is None


def _replay(folder: Path, correct: int, total: int) -> Path:
    verdicts = ["correct"] * correct + ["incorrect"] * (total - correct)
    questions = [lme_question(f"k-{n}", verdict) for n, verdict in enumerate(verdicts)]
    return write_lme(folder / f"result-{correct}-of-{total}.json", questions)


def test_a_replay_with_one_right_answer_of_six_is_shown(tmp_path: Path) -> None:
    path = _replay(tmp_path, 1, 6)
    assert json.loads(path.read_bytes())["overall_score"] != 1 / 6
    with Overview.load([str(tmp_path)], [], tmp_path) as overview:
        assert overview.not_shown == []
        assert [run.summary.pass_rate for run in overview.results.runs] == [1 / 6]


def test_a_replay_with_another_score_is_refused(tmp_path: Path) -> None:
    path = _replay(tmp_path, 1, 6)
    path.write_text(path.read_text().replace("0.16666666666666663", "0.166667"))
    with pytest.raises(UsageError, match="contradicts itself"):
        Overview.load([str(path)], [], tmp_path)


@pytest.mark.parametrize("name", ["pass_rate", "pass_rate_answered", "mean_score"])
def test_a_run_with_another_rate_is_refused(tmp_path: Path, name: str) -> None:
    rows = [question("q1"), *(question(f"q{n}", QuestionStatus.INCORRECT) for n in range(2, 7))]
    path = write_run(tmp_path / "go.json", "go", rows, **{name: 0.1667})
    with (
        pytest.raises(UsageError) as caught,
        Overview.load([str(path)], [], tmp_path) as overview,
    ):
        overview.read_questions(lambda *_: None)
    assert f"{name} " in f"{caught.value.message} {caught.value.excerpt}"
