"""Paired tests by cluster, held to enumeration, to scipy, and to the tests of single questions."""

from itertools import product

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from memconform.stats.clustered_pairs import (
    PairedCluster,
    clustered_difference,
    clusters_to_settle,
    fewest_clusters,
    sign_flip,
)
from memconform.stats.paired import mcnemar, tango

_TEN = [PairedCluster(200, *counts) for counts in ((9, 6), (7, 6), (5, 7), (4, 7), (9, 5))] * 2


@given(st.lists(st.integers(-9, 9), max_size=10))
@settings(max_examples=60)
def test_the_sign_flip_is_the_share_of_all_flips(differences: list[int]) -> None:
    observed = abs(sum(differences))
    flips = list(product((-1, 1), repeat=len(differences)))
    sums = [
        sum(sign * size for sign, size in zip(signs, differences, strict=True)) for signs in flips
    ]
    share = sum(abs(total) >= observed for total in sums) / len(flips)
    assert sign_flip(differences) == pytest.approx(share, rel=1e-12)


def test_the_sign_flip_is_scipys_permutation_test() -> None:
    first = np.array([9, 7, 8, 4, 9, 11, 3, 6, 10, 5])
    second = np.array([3, 5, 2, 6, 4, 6, 4, 1, 7, 5])
    theirs = scipy.stats.permutation_test(
        (first, second),
        lambda one, other, axis: (one - other).sum(axis=axis),
        permutation_type="samples",
        n_resamples=2**10,
        vectorized=True,
    )
    assert sign_flip((first - second).tolist()) == pytest.approx(theirs.pvalue)


@given(st.integers(0, 60), st.integers(0, 60))
def test_with_a_question_each_it_is_mcnemars_exact_test(b: int, c: int) -> None:
    assert sign_flip([1] * b + [-1] * c + [0] * 7) == pytest.approx(mcnemar(b, c).exact)


def test_many_clusters_need_no_draws() -> None:
    # The sum of 3,000 flipped differences is nearly normal, and goes up in steps of two.
    rng = np.random.default_rng(2)
    differences = rng.integers(-4, 5, 3_000).tolist()
    deviation = np.sqrt(sum(d * d for d in differences))
    wanted = 2 * scipy.stats.norm.sf((abs(sum(differences)) - 1) / deviation)
    assert sign_flip(differences) == pytest.approx(wanted, rel=0.01)


@pytest.mark.parametrize(
    ("alpha", "fewest"), [(0.05, 6), (0.05 / 3, 7), (0.1, 5), (0.25, 4), (0.0625, 6), (0.0626, 5)]
)
def test_fewer_clusters_never_reject(alpha: float, fewest: int) -> None:
    assert fewest_clusters(alpha) == fewest
    assert sign_flip([50] * fewest) < alpha <= sign_flip([50] * (fewest - 1))


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_an_alpha_that_is_no_probability_is_refused(alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha"):
        fewest_clusters(alpha)


def test_the_interval_is_cluster_t_where_clusters_differ() -> None:
    differing = [PairedCluster(200, *counts) for counts in ((30, 2), (3, 20), (25, 1), (2, 9))] * 3
    rates = [(own.first_only - own.second_only) / 200 for own in differing]
    theirs = scipy.stats.ttest_1samp(rates, 0).confidence_interval(0.9)
    assert clustered_difference(differing, 0.9) == pytest.approx((theirs.low, theirs.high))
    narrower = tango(180, 96, 2_400, 0.9)
    assert theirs.low < narrower.low < narrower.high < theirs.high


def test_the_interval_is_never_narrower_than_that_of_independent_questions() -> None:
    # Ten clusters that are alike to the question have no spread: cluster-t alone would be certain.
    for counts in ((0, 0), (3, 3), (6, 2)):
        same = [PairedCluster(50, *counts)] * 10
        b, c = (10 * count for count in counts)
        assert clustered_difference(same) == pytest.approx(tango(b, c, 500), abs=1e-12)


def test_one_cluster_has_no_spread() -> None:
    with pytest.raises(ValueError, match="1 clusters"):
        clustered_difference([PairedCluster(90, 5, 2)])


def test_the_returned_number_of_clusters_is_about_conclusive() -> None:
    """At twice the number the verdict is clear, at half of it there is none."""
    enough = clusters_to_settle(_TEN, margin=0.005, alpha=0.05)
    assert enough is not None
    assert enough > 10
    more = _TEN * (2 * enough // 10 + 1)
    less = (_TEN * enough)[: enough // 2]
    assert sign_flip(own.first_only - own.second_only for own in more) < 0.05
    assert sign_flip(own.first_only - own.second_only for own in less) > 0.05


def test_clusters_settle_equivalence_too() -> None:
    balanced = [PairedCluster(200, 8, 5), PairedCluster(200, 5, 8), PairedCluster(200, 9, 9)] * 2
    enough = clusters_to_settle(balanced, margin=0.01, alpha=0.05)
    assert enough is not None
    low, high = clustered_difference(balanced * (enough // 6 + 1), 0.9)
    assert -0.01 < low < high < 0.01
    assert clustered_difference(balanced, 0.9).low < -0.01


def test_no_number_is_given_where_none_is_known() -> None:
    # Five clusters are too few to plan by; and a difference that is the margin can be told apart
    # from it by no number of questions that somebody asks.
    assert clusters_to_settle(_TEN[:5], margin=0.02, alpha=0.05) is None
    near = [PairedCluster(1_000, 21, 0), PairedCluster(1_000, 0, 20)] * 5
    assert clusters_to_settle(near, margin=0.0005, alpha=0.05) is None


def test_more_pairs_need_more_clusters() -> None:
    one, three = (clusters_to_settle(_TEN, margin=1e-6, alpha=0.05, tests=n) for n in (1, 3))
    assert one is not None
    assert three is not None
    assert one < three
    assert clusters_to_settle(_TEN, margin=1e-6, alpha=0.05 / 3) == three
