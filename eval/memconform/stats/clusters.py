"""Means and rates over questions that come in clusters, such as conversations.

Questions of one cluster resemble each other, so that clusters count as drawn at random, not
questions (Donner & Klar 2000; Cameron & Miller 2015).
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from math import fsum, isnan, sqrt

from memconform.stats.intervals import LEAST_CLUSTERS, Interval, score_interval, wilson
from memconform.stats.student import t_quantile


@dataclass(frozen=True, slots=True)
class ClusteredMean:
    """A mean over questions, with its error from the spread between clusters."""

    mean: float
    error: float
    """Standard error."""
    clusters: float
    """Their effective number: fewer than there are if some are much larger than others."""

    @property
    def degrees_of_freedom(self) -> int:
        """At least 1; rounded down, because intervals are too narrow rather than too wide."""
        return max(1, int(self.clusters) - 1)

    def interval(self, confidence: float = 0.95) -> Interval:
        """The mean plus and minus its error, by Student's t."""
        half = t_quantile((1 + confidence) / 2, self.degrees_of_freedom) * self.error
        return Interval(self.mean - half, self.mean + half)


def cluster_totals(
    values: Iterable[float], clusters: Iterable[Hashable]
) -> list[tuple[float, int]]:
    """The sum and number of the values of each cluster; NaN marks a value that does not count."""
    by_cluster: dict[Hashable, list[float]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        if not isnan(value):
            by_cluster.setdefault(cluster, []).append(value)
    return [(fsum(members), len(members)) for members in by_cluster.values()]


def clustered_mean(clusters: Sequence[tuple[float, int]]) -> ClusteredMean:
    """The mean of values in clusters, each given as (sum, number of values, which is not 0).

    A ratio of two sums. Its error is the jackknife's, which leaves out one cluster at a time, and
    the effective number of clusters is (Σn)² / Σn² (Kish 1965). With clusters of one size this is
    the usual cluster-t with m - 1 degrees of freedom. If one cluster holds most questions, that
    covers 50 to 70 % where 95 are meant, and this one 95 and more (scripts/bench_clusters.py).

    Raises:
        ValueError: with fewer than two clusters.
    """
    m = len(clusters)
    if m < 2:
        raise ValueError(f"no spread between {m} clusters")
    total, size = fsum(total for total, _ in clusters), sum(n for _, n in clusters)
    mean = total / size
    shifts = [(own - mean * n) / (size - n) for own, n in clusters]
    """How far the mean moves without each cluster."""
    error = sqrt((m - 1) / m * fsum(shift * shift for shift in shifts))
    return ClusteredMean(mean, error, size * size / sum(n * n for _, n in clusters))


def clustered_wilson(
    clusters: Sequence[tuple[int, int]], confidence: float = 0.95
) -> tuple[Interval, float]:
    """Wilson's interval of a rate whose trials come in clusters, and the effective sample size.

    `clusters` holds a pair (successes, trials) per cluster. The sample size is divided by the
    design effect (Kish 1965), with the error of `clustered_mean`, and by the squared ratio of
    Student's quantiles at its degrees of freedom and at n - 1 (Korn & Graubard 1998), and never
    exceeds the number of trials. With fewer than `LEAST_CLUSTERS` it is Wilson's.

    Raises:
        ValueError: as `wilson` does.
    """
    if not all(0 <= successes <= trials for successes, trials in clusters):
        raise ValueError("a cluster has more successes than trials, or fewer than none")
    total, trials = (sum(column) for column in zip(*clusters, strict=True)) if clusters else (0, 0)
    m = len(clusters)
    if m < LEAST_CLUSTERS or m == trials or total in (0, trials):
        return wilson(total, trials, confidence), float(trials)
    mean = clustered_mean(clusters)
    rate = total / trials
    effect = mean.error**2 / (rate * (1 - rate) / trials)
    upper = (1 + confidence) / 2
    shrunk = (t_quantile(upper, trials - 1) / t_quantile(upper, mean.degrees_of_freedom)) ** 2
    # Clusters may also be more alike than by chance; an effect of 0 leaves the size unchanged.
    size = trials * min(1.0, shrunk / effect) if effect else float(trials)
    return score_interval(total, trials, size, confidence), size


def mean_interval(values: Sequence[float], clusters: Sequence[Hashable]) -> Interval:
    """The 95 % interval of the mean of values in [0, 1], one cluster per value.

    Values that are all 0 or 1 are a rate, whatever their metric is called: at k = 1 recall_any,
    precision, mrr and nDCG are the same number, and must have the same interval. With fewer than
    `LEAST_CLUSTERS` clusters the interval is about these alone, and counts single values.
    """
    units: Sequence[Hashable] = clusters
    if len(set(clusters)) < LEAST_CLUSTERS:
        units = range(len(values))
    totals = cluster_totals(values, units)
    if set(values) <= {0.0, 1.0}:
        return clustered_wilson([(int(passed), asked) for passed, asked in totals])[0]
    if len(totals) < 2:
        return Interval(0.0, 1.0)
    low, high = clustered_mean(totals).interval()
    return Interval(max(0.0, low), min(1.0, high))
