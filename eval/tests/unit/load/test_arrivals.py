"""Arrivals: Poisson, repeatable, and the same for every SDK."""

import random
from itertools import islice, pairwise

import pytest
from scipy import stats

from memconform.load.arrivals import arrivals, poisson_times
from memconform.load.plan import Mix, Step

_SEARCHES: Mix = {"search": 1.0}
_MIXED: Mix = {"search": 0.7, "ask": 0.2, "ingest": 0.1}


def test_the_same_seed_sends_the_same_requests_at_the_same_instants() -> None:
    first = list(arrivals(Step(rate=50), 10, _MIXED, 12, seed=3))
    assert first == list(arrivals(Step(rate=50), 10, _MIXED, 12, seed=3))
    assert first != list(arrivals(Step(rate=50), 10, _MIXED, 12, seed=4))


def test_another_mix_leaves_the_instants_as_they_are() -> None:
    mixed = arrivals(Step(rate=50), 10, _MIXED, 12, seed=3)
    searches = arrivals(Step(rate=50), 10, _SEARCHES, 12, seed=3)
    assert [each.at_s for each in mixed] == [each.at_s for each in searches]


def test_gaps_are_exponential_and_independent() -> None:
    """Against Kolmogorov-Smirnov with a fixed seed: evenly spaced arrivals fail it by far."""
    rate = 40.0
    times = [0.0, *poisson_times(rate, 250, random.Random(7))]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert len(gaps) == pytest.approx(rate * 250, rel=0.03)
    assert stats.kstest(gaps, "expon", args=(0, 1 / rate)).pvalue > 0.01
    assert abs(stats.pearsonr(gaps[:-1], gaps[1:]).statistic) < 0.03
    even = [1 / rate] * len(gaps)
    assert stats.kstest(even, "expon", args=(0, 1 / rate)).pvalue < 1e-9


def test_arrivals_lie_within_the_step_in_ascending_order() -> None:
    at = [each.at_s for each in arrivals(Step(rate=20), 5, _SEARCHES, 3, seed=1)]
    assert at == sorted(at)
    assert at[0] > 0
    assert at[-1] < 5


def test_each_question_comes_once_before_any_comes_again() -> None:
    rows = [each.row for each in islice(arrivals(Step(workers=2), 1, _SEARCHES, 8, seed=1), 24)]
    for start in (0, 8, 16):
        assert sorted(rows[start : start + 8]) == list(range(8))
    assert rows[:8] != rows[8:16]


def test_operations_have_their_shares() -> None:
    drawn = [e.operation for e in islice(arrivals(Step(workers=1), 1, _MIXED, 8, 1), 10_000)]
    for operation, share in _MIXED.items():
        assert drawn.count(operation) / len(drawn) == pytest.approx(share, abs=0.02)
