"""Intervals where questions share a conversation."""

import numpy as np
import pytest
import scipy.stats

from memconform.stats.clusters import cluster_totals, clustered_mean, clustered_wilson
from memconform.stats.intervals import wilson


def test_clusters_that_agree_with_themselves_widen_the_interval() -> None:
    # Ten conversations of 20 questions each, all right or all wrong: 10 things are known, not 200.
    clusters = [(20, 20)] * 6 + [(0, 20)] * 4
    interval, size = clustered_wilson(clusters)
    plain = wilson(120, 200)
    # Kish: the mean square between clusters over that of single trials, 20 · 10/9; then Korn and
    # Graubard's ratio of t quantiles at 199 and 9 degrees of freedom.
    t = scipy.stats.t.ppf
    wanted = 200 / (20 * 10 / 9) * (t(0.975, 199) / t(0.975, 9)) ** 2
    assert size == pytest.approx(wanted)
    assert interval.low < plain.low < 0.6 < plain.high < interval.high


def test_uninformative_clusters_do_not_narrow_the_interval() -> None:
    interval, size = clustered_wilson([(5, 10)] * 20)
    assert size == 200.0
    assert interval == wilson(100, 200)


@pytest.mark.parametrize(
    "clusters",
    [[(3, 5), (5, 5)], [(1, 1)] * 30 + [(0, 1)] * 9, [(5, 5)] * 12, [(0, 4)] * 12, []],
    ids=["few clusters", "a question each", "all right", "all wrong", "none"],
)
def test_without_a_spread_between_clusters_it_is_wilsons(clusters: list[tuple[int, int]]) -> None:
    successes, trials = sum(s for s, _ in clusters), sum(n for _, n in clusters)
    assert clustered_wilson(clusters) == (wilson(successes, trials), trials)


def test_a_cluster_of_more_successes_than_trials_is_refused() -> None:
    with pytest.raises(ValueError, match="more successes"):
        clustered_wilson([(2, 1)])


def test_one_large_cluster_is_not_many() -> None:
    # 200 questions about one conversation, and 40 about others: nearly all that is known of the
    # rate is known from one conversation.
    dominated = [(150, 200), *[(1, 1), (0, 1)] * 20]
    _, size = clustered_wilson(dominated)
    _, of_many = clustered_wilson([(15, 20), (5, 20)] * 6)
    assert size < 10 < of_many


def test_the_mean_of_equal_clusters_is_students() -> None:
    means = np.random.default_rng(8).random(10)
    mean = clustered_mean([(20 * value, 20) for value in means.tolist()])
    theirs = scipy.stats.ttest_1samp(means, 0).confidence_interval(0.9)
    assert mean.interval(0.9) == pytest.approx((theirs.low, theirs.high))
    assert mean.degrees_of_freedom == 9
    assert mean.mean == pytest.approx(means.mean())


def test_the_mean_of_single_values_is_students() -> None:
    values = np.random.default_rng(9).random(300).tolist()
    theirs = scipy.stats.ttest_1samp(values, 0).confidence_interval(0.95)
    ours = clustered_mean(cluster_totals(values, range(300))).interval()
    assert ours == pytest.approx((theirs.low, theirs.high), rel=1e-9)


def test_the_error_leaves_out_one_cluster_at_a_time() -> None:
    clusters = [(3.0, 5), (9.5, 12), (0.5, 4), (20.0, 21), (2.0, 8)]
    total, size = sum(t for t, _ in clusters), sum(n for _, n in clusters)
    without = [(total - t) / (size - n) for t, n in clusters]
    wanted = np.sqrt(4 / 5 * sum((mean - total / size) ** 2 for mean in without))
    mean = clustered_mean(clusters)
    assert mean.error == pytest.approx(wanted)
    assert mean.clusters == pytest.approx(50**2 / (25 + 144 + 16 + 441 + 64))
    assert mean.degrees_of_freedom == 2


def test_one_cluster_has_no_mean_with_an_error() -> None:
    with pytest.raises(ValueError, match="no spread"):
        clustered_mean([(3.0, 5)])


def test_values_that_were_not_measured_are_in_no_cluster() -> None:
    values = [1.0, float("nan"), 0.5, float("nan"), 0.25]
    assert cluster_totals(values, ["a", "a", "b", "c", "a"]) == [(1.25, 2), (0.5, 1)]
