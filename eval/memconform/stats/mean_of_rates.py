"""The mean of several rates, each weighted alike, with its interval."""

from collections.abc import Mapping, Sequence
from math import fsum, sqrt
from statistics import fmean

from memconform.stats.intervals import LEAST_CLUSTERS, Interval, wilson
from memconform.stats.student import t_quantile


def mean_of_rates(rates: Sequence[tuple[int, int]]) -> tuple[float, Interval]:
    """The mean of independent rates (successes, trials), and its 95 % interval.

    The interval recovers each rate's variance from its Wilson limits (MOVER; Zou & Donner 2008,
    "Construction of confidence limits about effect measures"), and so needs no normal
    approximation of a rate that is near 0 or 1.

    Raises:
        ValueError: without rates, or for a rate without trials.
    """
    if not rates or not all(trials for _, trials in rates):
        raise ValueError("a mean of rates needs trials of each")
    below = above = total = 0.0
    for successes, trials in rates:
        rate = successes / trials
        low, high = wilson(successes, trials)
        total += rate
        below += (rate - low) ** 2
        above += (high - rate) ** 2
    mean, n = total / len(rates), len(rates)
    return mean, Interval(mean - sqrt(below) / n, mean + sqrt(above) / n)


def clustered_mean_of_rates(
    rates: Sequence[Mapping[str, tuple[int, int]]],
) -> tuple[float, Interval]:
    """The mean of rates whose trials come in clusters that they share, and its 95 % interval.

    The error is the jackknife's, which leaves out one cluster of all rates at a time, and the
    interval Student's with one degree of freedom fewer than there are clusters. With fewer than
    `LEAST_CLUSTERS`, without any spread, or if a rate has trials in a single cluster, the interval
    is that of `mean_of_rates`, which is about these clusters alone.

    Args:
        rates: for each rate its successes and trials by cluster.

    Raises:
        ValueError: as `mean_of_rates`.
    """
    totals = [
        (sum(won for won, _ in rate.values()), sum(asked for _, asked in rate.values()))
        for rate in rates
    ]
    mean, independent = mean_of_rates(totals)
    clusters = list(dict.fromkeys(cluster for rate in rates for cluster in rate))
    m = len(clusters)
    if m < LEAST_CLUSTERS or min(map(len, rates)) < 2:
        return mean, independent
    without = [
        fmean(
            (won - rate.get(cluster, (0, 0))[0]) / (asked - rate.get(cluster, (0, 0))[1])
            for rate, (won, asked) in zip(rates, totals, strict=True)
        )
        for cluster in clusters
    ]
    centre = fmean(without)
    error = sqrt((m - 1) / m * fsum((each - centre) ** 2 for each in without))
    if error == 0:
        return mean, independent
    half = t_quantile(0.975, m - 1) * error
    return mean, Interval(max(0.0, mean - half), min(1.0, mean + half))
