"""Percentile bootstrap intervals of means."""

import random
import subprocess
import sys
from math import isnan, nan

import numpy as np
import pytest
import scipy.stats

from memconform.stats.bootstrap import mean_intervals, resampled_totals


def test_the_intervals_of_a_seed_stay_the_same() -> None:
    """numpy may change what a seed draws (NEP 19), and with it the figures of stored results."""
    columns = [[1.0, 0.0, 0.0, -1.0, nan, 1.0, 1.0], [0.0] * 7]
    assert mean_intervals(columns, resamples=500) == [(-1 / 3, 0.9321428571428538), (0.0, 0.0)]
    tenths = [number / 10 for number in range(30)]
    [interval] = mean_intervals([tenths], seed=4, resamples=1_000)
    assert interval == pytest.approx((1.146666666666667, 1.7734166666666669), abs=1e-12)
    totals = resampled_totals([[1.0, 2.0, 4.0], [1.0] * 3], seed=3, resamples=3)
    assert list(totals) == [[6.0, 3.0], [6.0, 3.0], [7.0, 3.0]]


def test_the_bootstrap_of_single_rows_is_scipys() -> None:
    values = np.random.default_rng(7).random(200) ** 3
    [ours] = mean_intervals([values.tolist()])
    theirs = scipy.stats.bootstrap(
        (values,), np.mean, method="percentile", n_resamples=10_000, rng=1
    ).confidence_interval
    width = theirs.high - theirs.low
    assert ours.low == pytest.approx(theirs.low, abs=width / 30)
    assert ours.high == pytest.approx(theirs.high, abs=width / 30)


def test_the_bootstrap_is_the_same_for_a_seed_and_covers_columns_alike() -> None:
    columns = np.random.default_rng(5).random((2, 60)).tolist()
    first = mean_intervals(columns, seed=4, resamples=700)
    assert first == mean_intervals(columns, seed=4, resamples=700)
    assert first != mean_intervals(columns, seed=5, resamples=700)
    # Both columns are of the same resamples.
    [alone] = mean_intervals(columns[1:], seed=4, resamples=700)
    assert first[1] == pytest.approx(alone)


def test_batches_do_not_change_what_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(1)
    columns = [[rng.gauss(0.1, 0.5) for _ in range(90)]]
    whole = mean_intervals(columns, resamples=100), list(resampled_totals(columns, resamples=100))
    monkeypatch.setattr("memconform.stats.bootstrap._BATCH_SIZE", 7 * 90)
    parts = mean_intervals(columns, resamples=100), list(resampled_totals(columns, resamples=100))
    np.testing.assert_allclose(parts[0], whole[0], rtol=1e-12)
    np.testing.assert_allclose(parts[1], whole[1], rtol=1e-12)


def test_the_bootstrap_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no rows"):
        mean_intervals([[]])
    with pytest.raises(ValueError, match="no rows"):
        next(resampled_totals([[]]))


def test_nan_is_ignored() -> None:
    values = np.random.default_rng(1).random(300).tolist()
    with_holes = [each for value in values for each in (value, nan)]
    some, none = mean_intervals([with_holes, [nan] * 600])
    [alone] = mean_intervals([values])
    assert some == pytest.approx(alone, abs=0.005)
    assert all(map(isnan, none))


@pytest.mark.parametrize("zeros", [[0.0] * 90, [0.0, nan, 0.0], [-0.0]])
def test_runs_that_agree_are_not_resampled(zeros: list[float]) -> None:
    assert mean_intervals([zeros]) == [(0.0, 0.0)]
    assert not _imports_numpy([zeros])
    assert _imports_numpy([[*zeros, 1.0]])


def _imports_numpy(columns: list[list[float]]) -> bool:
    code = (
        "import sys; from math import nan; from memconform.stats.bootstrap import mean_intervals;"
        f"mean_intervals({columns}); print('numpy' in sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return ended.stdout == "True\n"


def test_a_column_without_a_value_has_no_interval() -> None:
    [low, high], other = mean_intervals([[nan, nan], [1.0, 1.0]])
    assert isnan(low)
    assert isnan(high)
    assert other == (1.0, 1.0)
    assert all(map(isnan, mean_intervals([[nan]])[0]))
