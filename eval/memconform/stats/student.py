"""Quantiles of Student's t without scipy, which neither `run` nor `parity` installs."""

from functools import cache
from itertools import accumulate
from math import cos, pi, sin, sqrt, tan
from operator import mul
from statistics import NormalDist

_MOST_EXACT = 200
"""Degrees of freedom from which the series in 1 / df is exact to 12 digits, and quicker."""


@cache
def t_quantile(probability: float, df: int) -> float:
    """The value below which Student's t with `df` degrees of freedom lies with a probability.

    Exact up to rounding (Abramowitz & Stegun 1964, 26.7.3 to 26.7.5).

    Raises:
        ValueError: unless 0 < probability < 1 and df ≥ 1.
    """
    if not 0 < probability < 1 or df < 1:
        raise ValueError(f"no quantile at probability {probability} with {df} degrees of freedom")
    if probability < 0.5:
        return -t_quantile(1 - probability, df)
    if df > _MOST_EXACT:
        return _expansion(NormalDist().inv_cdf(probability), df)
    low, high = 0.0, pi / 2
    while low < (angle := (low + high) / 2) < high:
        if _within(angle, df) < 2 * probability - 1:
            low = angle
        else:
            high = angle
    return sqrt(df) * tan(angle)


def _within(angle: float, df: int) -> float:
    """The probability that |t| is at most sqrt(df) · tan(angle)."""
    odd = df % 2
    ratios = ((k - 1 + odd) / (k + odd) for k in range(2, df - odd, 2))
    square = cos(angle) ** 2
    terms = accumulate((ratio * square for ratio in ratios), mul, initial=1.0)
    if not odd:
        return sin(angle) * sum(terms)
    return 2 / pi * (angle + (sin(angle) * cos(angle) * sum(terms) if df > 1 else 0.0))


def _expansion(z: float, df: int) -> float:
    """The quantile from that of the normal distribution, by the first four powers of 1 / df."""
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92_160,
    )
    return z + sum(term / float(df) ** power for power, term in enumerate(terms, 1))
