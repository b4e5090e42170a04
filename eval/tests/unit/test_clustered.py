"""Intervals where questions share a conversation."""

import numpy as np
import pytest
import scipy.stats

from memconform.stats.bootstrap import bootstrap_means
from memconform.stats.intervals import clustered_wilson, wilson


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


def test_the_bootstrap_of_single_rows_is_scipys() -> None:
    values = np.random.default_rng(7).random(200) ** 3
    [ours] = bootstrap_means(values[:, None], range(200), resamples=10_000)
    theirs = scipy.stats.bootstrap(
        (values,), np.mean, method="percentile", n_resamples=10_000, rng=1
    ).confidence_interval
    width = theirs.high - theirs.low
    assert ours.low == pytest.approx(theirs.low, abs=width / 30)
    assert ours.high == pytest.approx(theirs.high, abs=width / 30)


def test_the_bootstrap_draws_whole_clusters() -> None:
    # The mean of 12 clusters whose rows are all alike varies as that of 12 values does.
    means = np.random.default_rng(3).random(12)
    rows, clusters = np.repeat(means, 50), np.repeat(np.arange(12), 50).tolist()
    [clustered] = bootstrap_means(rows[:, None], clusters)
    [of_means] = bootstrap_means(means[:, None], range(12))
    [single] = bootstrap_means(rows[:, None], range(600))
    assert clustered == pytest.approx(of_means, abs=0.01)
    assert (single.high - single.low) < (clustered.high - clustered.low) / 4


def test_the_bootstrap_is_the_same_for_a_seed_and_covers_columns_alike() -> None:
    values = np.random.default_rng(5).random((60, 2))
    first = bootstrap_means(values, range(60), seed=4, resamples=700)
    assert first == bootstrap_means(values, range(60), seed=4, resamples=700)
    assert first != bootstrap_means(values, range(60), seed=5, resamples=700)
    # Both columns are of the same resamples.
    [alone] = bootstrap_means(values[:, 1:], range(60), seed=4, resamples=700)
    assert first[1] == pytest.approx(alone)


@pytest.mark.parametrize(("rows", "clusters"), [(0, 0), (3, 2)])
def test_the_bootstrap_of_nothing_is_refused(rows: int, clusters: int) -> None:
    with pytest.raises(ValueError, match="rows of values"):
        bootstrap_means(np.zeros((rows, 1)), range(clusters))


def test_nan_is_ignored() -> None:
    values = np.random.default_rng(1).random(300)
    with_holes = np.full((600, 2), np.nan)
    with_holes[::2, 0] = values
    some, none = bootstrap_means(with_holes, range(600))
    [alone] = bootstrap_means(values[:, None], range(300))
    assert some == pytest.approx(alone, abs=0.005)
    assert np.isnan(none).all()
