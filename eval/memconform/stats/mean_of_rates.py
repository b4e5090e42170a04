"""The mean of several rates, each weighted alike, with its interval."""

from collections.abc import Sequence
from math import sqrt

from memconform.stats.intervals import Interval, wilson


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
