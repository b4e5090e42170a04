"""What is drawn in Python is what numpy draws, and the figures are the same."""

import random
from itertools import islice
from math import isnan, nan
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memconform.stats import resampling
from memconform.stats.bootstrap import bootstrap_means
from memconform.stats.generator import integers
from memconform.stats.resampling import intervals_in_python, is_slow, mean_intervals

_SEEDS = st.integers(0, 2**200)


@given(_SEEDS, st.integers(1, 2**32))
def test_numbers_are_numpys(seed: int, bound: int) -> None:
    theirs = np.random.default_rng(seed).integers(0, bound, size=101)
    assert list(islice(integers(seed, bound), 101)) == theirs.tolist()


def test_numbers_that_would_be_unfair_are_drawn_anew() -> None:
    bound = 3 * 2**30  # a quarter of all words
    theirs = np.random.default_rng(0).integers(0, bound, size=10_000)
    assert list(islice(integers(0, bound), 10_000)) == theirs.tolist()


_SCORES = st.sampled_from([-1.0, -0.5, 0.0, 0.25, 1.0, nan])
_COLUMNS = st.integers(1, 40).flatmap(
    lambda rows: st.lists(st.lists(_SCORES, min_size=rows, max_size=rows), min_size=1, max_size=3)
)


@given(_COLUMNS, st.integers(0, 5), st.integers(100, 203), st.sampled_from([0.9, 0.95]))
def test_intervals_are_those_of_numpy(
    columns: list[list[float]], seed: int, resamples: int, confidence: float
) -> None:
    """To the last bit: sums of such scores are exact, in whatever order."""
    options = {"seed": seed, "confidence": confidence, "resamples": resamples}
    ours = intervals_in_python(columns, **options)  # type: ignore[arg-type] # resamples is whole
    theirs = bootstrap_means(np.array(columns).T, **options)  # type: ignore[arg-type]
    np.testing.assert_array_equal(np.array(ours), np.array(theirs))


def test_intervals_of_latencies_are_those_of_numpy() -> None:
    """Logarithms of ratios: their sums are rounded, and that depends on the order."""
    rng = random.Random(1)
    column = [rng.gauss(0.1, 0.5) for _ in range(90)]
    ours = intervals_in_python([column], seed=0, resamples=2_000, confidence=0.95)
    theirs = bootstrap_means(np.array([column]).T, resamples=2_000)
    np.testing.assert_allclose(np.array(ours), np.array(theirs), rtol=1e-12)


@pytest.mark.parametrize("zeros", [[0.0] * 90, [0.0, nan, 0.0], [-0.0]])
def test_runs_that_agree_are_not_resampled(zeros: list[float]) -> None:
    with (
        mock.patch.object(resampling, "find_spec", return_value=None),
        mock.patch.object(resampling, "integers", side_effect=AssertionError),
    ):
        assert mean_intervals([zeros]) == [(0.0, 0.0)]
        with pytest.raises(AssertionError):
            mean_intervals([[0.0, 1.0]])
    theirs = bootstrap_means(np.array([zeros]).T)
    assert theirs == [(0.0, 0.0)]


def test_a_column_without_a_value_has_no_interval() -> None:
    [low, high], other = mean_intervals([[nan, nan], [1.0, 1.0]])
    assert isnan(low)
    assert isnan(high)
    assert other == (1.0, 1.0)
    assert all(map(isnan, mean_intervals([[nan]])[0]))
    with pytest.raises(ValueError, match="no rows"):
        mean_intervals([[]])


def test_without_numpy_the_figures_are_the_same() -> None:
    columns = [[1.0, 0.0, 0.0, -1.0, nan, 1.0, 1.0], [0.0] * 7]
    with mock.patch.object(resampling, "find_spec", return_value=None):
        without = mean_intervals(columns, resamples=500)
        assert is_slow(20_000)
        assert not is_slow(1_000)
    assert without == mean_intervals(columns, resamples=500)
    assert not is_slow(20_000)
