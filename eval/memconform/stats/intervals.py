"""Confidence intervals of rates."""

from math import sqrt
from statistics import NormalDist
from typing import NamedTuple

LEAST_CLUSTERS = 10
"""With fewer clusters, the spread between them says too little about how clusters vary. Questions
are then treated as drawn one by one, and the interval is about these clusters only."""


class Interval(NamedTuple):
    """Lower and upper end of a confidence interval."""

    low: float
    high: float


def wilson(successes: int, trials: int, confidence: float = 0.95) -> Interval:
    """Wilson's score interval of a binomial rate (Wilson 1927), without continuity correction.

    Without trials the interval is [0, 1].

    Raises:
        ValueError: unless 0 ≤ successes ≤ trials and 0 < confidence < 1.
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} successes in {trials} trials")
    return score_interval(successes, trials, trials, confidence)


def score_interval(successes: int, trials: int, size: float, confidence: float) -> Interval:
    """Wilson's interval for an effective sample size of `size`, which need not be whole.

    Raises:
        ValueError: unless 0 < confidence < 1.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence of {confidence} is outside (0, 1)")
    if trials == 0:
        return Interval(0.0, 1.0)
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    rate = successes / trials
    scale = 1 + z * z / size
    centre = (rate + z * z / (2 * size)) / scale
    half = z * sqrt(rate * (1 - rate) / size + z * z / (4 * size * size)) / scale
    # At a rate of 0 or 1 the interval ends there exactly; rounding errors must not move it.
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == trials else min(1.0, centre + half)
    return Interval(low, high)
