"""Confidence intervals of rates."""

from collections.abc import Sequence
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
    return _score_interval(successes, trials, trials, confidence)


def clustered_wilson(
    clusters: Sequence[tuple[int, int]], confidence: float = 0.95
) -> tuple[Interval, float]:
    """Wilson's interval of a rate whose trials come in clusters, and the effective sample size.

    `clusters` holds a pair (successes, trials) per cluster. The sample size is divided by the
    design effect (Kish 1965) and by the squared ratio of Student's quantiles at m - 1 and n - 1
    degrees of freedom (Korn & Graubard 1998), and never exceeds the number of trials.

    Raises:
        ValueError: as `wilson` does.
    """
    if not all(0 <= successes <= trials for successes, trials in clusters):
        raise ValueError("a cluster has more successes than trials, or fewer than none")
    total, trials = (sum(column) for column in zip(*clusters, strict=True)) if clusters else (0, 0)
    m = len(clusters)
    if m < LEAST_CLUSTERS or m == trials or total in (0, trials):
        return wilson(total, trials, confidence), float(trials)
    from scipy.stats import t  # noqa: PLC0415 - half a second that `run` does not need

    rate = total / trials
    between = m / (m - 1) * sum((s - rate * n) ** 2 for s, n in clusters) / trials**2
    effect = between / (rate * (1 - rate) / trials)
    upper = (1 + confidence) / 2
    shrunk = (t.ppf(upper, trials - 1) / t.ppf(upper, m - 1)) ** 2
    # Clusters may also be more alike than by chance; an effect of 0 leaves the size unchanged.
    size = trials * min(1.0, float(shrunk) / effect) if effect else float(trials)
    return _score_interval(total, trials, size, confidence), size


def _score_interval(successes: int, trials: int, size: float, confidence: float) -> Interval:
    """The score interval of a rate for an effective sample size of `size`."""
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
