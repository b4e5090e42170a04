"""Paired tests of two pass rates on questions in clusters: difference and equivalence.

With one question a cluster use `stats.paired`, whose tests are less conservative.
"""

from collections.abc import Iterable, Sequence
from math import ceil, fsum, log2, sqrt
from typing import NamedTuple

from memconform.stats.clusters import ClusteredMean, clustered_mean
from memconform.stats.intervals import Interval
from memconform.stats.paired import MOST_QUESTIONS, tango


class PairedCluster(NamedTuple):
    """The questions of one cluster that two runs were both measured on."""

    size: int
    first_only: int
    """Questions that only the first run passes."""
    second_only: int


def sign_flip(differences: Iterable[int]) -> float:
    """Exact two-sided p of differences that would have been negative as likely as positive.

    If two systems do not differ, exchanging their results in a whole cluster changes nothing, so
    that all 2^m ways of flipping signs are equally likely (Fisher 1935, section 21; Canay, Romano &
    Shaikh 2017 for few clusters). p is the share of them whose sum is at least as far from 0 as the
    observed one. `differences` has one for each cluster, such as `first_only - second_only`; for
    clusters of one question this is McNemar's exact test.

    The sums are convolved instead of listed, so that no number of clusters needs random draws.
    """
    signed = list(differences)
    observed = abs(sum(signed))
    if observed == 0:
        return 1.0
    sizes = sorted(abs(difference) for difference in signed if difference)
    # A sum is as far below 0 as observed if the flipped differences add up to at most this.
    most = (sum(sizes) - observed) // 2
    shares = [1.0]
    """By the sum of the flipped differences, up to `most`: the share of ways to flip."""
    for size in sizes:
        kept = [*shares, *(0.0 for _ in range(min(size, most + 1 - len(shares))))]
        flipped = [*(0.0 for _ in range(size)), *shares]
        shares = [(one + other) / 2 for one, other in zip(kept, flipped, strict=False)]
    return min(1.0, 2 * fsum(shares))


def fewest_clusters(alpha: float) -> int:
    """The fewest clusters with which `sign_flip` can be below `alpha`: 6 at 0.05.

    With m clusters p is never below 2 / 2^m, however large the differences are.

    Raises:
        ValueError: unless 0 < alpha < 1.
    """
    if not 0 < alpha < 1:
        raise ValueError(f"an alpha of {alpha} is outside (0, 1)")
    least = ceil(1 - log2(alpha))
    return least if 2.0 ** (1 - least) < alpha else least + 1


def clustered_difference(clusters: Sequence[PairedCluster], confidence: float = 0.95) -> Interval:
    """Interval of the first run's rate minus the second's, over questions in clusters.

    The cluster-t interval (`clustered_mean`), widened to Tango's where that one ends farther out:
    a few clusters may be alike by chance, and without a single difference they have no spread at
    all, which would be certainty. Two one-sided tests by it hold their level
    (scripts/bench_clusters.py).

    Raises:
        ValueError: with fewer than two clusters, or as `tango` does.
    """
    estimate = _difference(clusters)
    size, first_only, second_only = (sum(column) for column in zip(*clusters, strict=True))
    return _outer(estimate.interval(confidence), tango(first_only, second_only, size, confidence))


def _difference(clusters: Iterable[PairedCluster]) -> ClusteredMean:
    return clustered_mean([(own.first_only - own.second_only, own.size) for own in clusters])


def _outer(one: Interval, other: Interval) -> Interval:
    return Interval(max(-1.0, min(one.low, other.low)), min(1.0, max(one.high, other.high)))


def clusters_to_settle(
    clusters: Sequence[PairedCluster], *, margin: float, alpha: float, tests: int = 1
) -> int | None:
    """About how many clusters like these would be conclusive, at the observed rates and spread.

    As `questions_to_settle` does for questions: at the returned number either the rates are
    equivalent at `alpha`, or they differ at `alpha / tests` (by cluster-t, which the exact test
    comes close to). None if that takes more than `MOST_QUESTIONS` questions, and with fewer than
    `fewest_clusters`, whose spread is too uncertain to plan by.
    """
    m = len(clusters)
    if m < fewest_clusters(alpha / tests):
        return None
    estimate = _difference(clusters)
    size, *discordant = (sum(column) for column in zip(*clusters, strict=True))
    rates = [max(count, 0.5) / size for count in discordant]

    def is_conclusive(count: int) -> bool:
        grown = count / m
        planned = ClusteredMean(
            estimate.mean, estimate.error / sqrt(grown), estimate.clusters * grown
        )
        low, high = planned.interval(1 - alpha / tests)
        if not low <= 0 <= high:
            return True
        n = round(size * grown)
        b = min(n, round(rates[0] * n))
        score = tango(b, min(n - b, round(rates[1] * n)), n, 1 - 2 * alpha)
        low, high = _outer(planned.interval(1 - 2 * alpha), score)
        return -margin < low and high < margin

    few, many = m, 2 * m
    while not is_conclusive(many):
        few, many = many, 2 * many
        if size * many > MOST_QUESTIONS * m:
            return None
    while few + 1 < many:
        middle = (few + many) // 2
        few, many = (few, middle) if is_conclusive(middle) else (middle, many)
    return many
