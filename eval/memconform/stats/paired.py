"""Paired tests of two pass rates on the same questions: difference and equivalence.

`first_only` (b) and `second_only` (c) count the questions that only one of the two runs passes, out
of `pairs` (n) questions that both were measured on.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, lgamma, log, sqrt
from statistics import NormalDist

from memconform.stats.intervals import Interval

MOST_QUESTIONS = 100_000
"""No one asks more questions than that; `questions_to_settle` returns None beyond it."""


@dataclass(frozen=True, slots=True)
class McNemar:
    """Two-sided p values for equal rates; both are 1 if there are no discordant questions."""

    exact: float
    mid_p: float
    """Counts half of the observed outcome's probability (Fagerland, Lydersen & Laake 2013), because
    the exact test is conservative."""


def mcnemar(first_only: int, second_only: int) -> McNemar:
    """McNemar's test of whether discordant questions favour both runs equally (McNemar 1947).

    Raises:
        ValueError: if a count is negative.
    """
    if min(first_only, second_only) < 0:
        raise ValueError(f"counts must not be negative: {first_only} and {second_only}")
    discordant = first_only + second_only
    if discordant == 0:
        return McNemar(1.0, 1.0)
    less = min(first_only, second_only)
    probability = _half_binomial(less, discordant)
    tail = _tail(less, discordant, probability)
    if first_only == second_only:
        return McNemar(1.0, 1 - probability / 2)
    return McNemar(min(1.0, 2 * tail), 2 * tail - probability)


def _half_binomial(k: int, n: int) -> float:
    """The probability of k heads in n tosses of a fair coin."""
    return exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) - n * log(2))


def _tail(k: int, n: int, probability: float) -> float:
    """The probability of at most k heads, given that of exactly k."""
    tail = term = probability
    while k > 0 and term > tail * 1e-17:
        term *= k / (n - k + 1)
        tail += term
        k -= 1
    return tail


def holm(p_values: Sequence[float]) -> list[float]:
    """p values adjusted for multiple testing (Holm 1979), in the order given."""
    m = len(p_values)
    adjusted = [0.0] * m
    highest = 0.0
    for rank, index in enumerate(sorted(range(m), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (m - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def tango(first_only: int, second_only: int, pairs: int, confidence: float = 0.95) -> Interval:
    """Score interval of the first run's rate minus the second's (Tango 1998).

    Without pairs the interval is [-1, 1].

    Raises:
        ValueError: unless the counts fit into `pairs` and 0 < confidence < 1.
    """
    if min(first_only, second_only) < 0 or first_only + second_only > pairs:
        raise ValueError(f"{first_only} and {second_only} of {pairs} pairs")
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence of {confidence} is outside (0, 1)")
    if pairs == 0:
        return Interval(-1.0, 1.0)
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    observed = (first_only - second_only) / pairs

    def distance(difference: float) -> float:
        return _score(first_only, second_only, pairs, difference)

    low = -1.0 if observed == -1 else _crossing(lambda d: distance(d) - z, -1.0, observed)
    high = 1.0 if observed == 1 else _crossing(lambda d: distance(d) + z, observed, 1.0)
    return Interval(low, high)


def _score(b: int, c: int, n: int, difference: float) -> float:
    """Tango's statistic: how many standard errors the observed difference is above `difference`.

    It decreases in `difference`.
    """
    linear = -b - c + (2 * n - b + c) * difference
    constant = -c * difference * (1 - difference)
    # The maximum likelihood estimate of the second run's share of discordant pairs, given the
    # difference.
    share = (sqrt(max(0.0, linear * linear - 8 * n * constant)) - linear) / (4 * n)
    variance = n * (2 * share + difference * (1 - difference))
    distance = b - c - n * difference
    if variance <= 0:
        return 0.0 if distance == 0 else distance * float("inf")
    return distance / sqrt(variance)


def _crossing(falling: Callable[[float], float], low: float, high: float) -> float:
    """The zero of a decreasing function, by bisection to the last bit."""
    while low < (middle := (low + high) / 2) < high:
        if falling(middle) > 0:
            low = middle
        else:
            high = middle
    return middle


def equivalent(first_only: int, second_only: int, pairs: int, margin: float, alpha: float) -> bool:
    """Whether the rates are within `margin` of each other, by two one-sided tests at `alpha`.

    Equivalently, whether the score interval of confidence 1 - 2 alpha lies inside the margin
    (Schuirmann 1987).

    Raises:
        ValueError: as `tango` does.
    """
    low, high = tango(first_only, second_only, pairs, 1 - 2 * alpha)
    return -margin < low and high < margin


def questions_to_settle(
    first_only: int, second_only: int, pairs: int, *, margin: float, alpha: float, tests: int = 1
) -> int | None:
    """About how many questions would be conclusive, if discordant ones keep their observed rates.

    At the returned number, either the mid-p is below `alpha / tests` or the rates are equivalent at
    `alpha`; a somewhat smaller number may do, because counts are integers. None if more than
    `MOST_QUESTIONS` are needed or there are no pairs. A count of 0 is taken as half a question,
    because no sample shows that a rate is 0.
    """
    if pairs == 0:
        return None
    rates = [max(count, 0.5) / pairs for count in (first_only, second_only)]
    if first_only == second_only:
        rates = [sum(rates) / 2] * 2

    def is_conclusive(n: int) -> bool:
        b = min(n, round(rates[0] * n))
        c = min(n - b, round(rates[1] * n))
        return mcnemar(b, c).mid_p < alpha / tests or equivalent(b, c, n, margin, alpha)

    few, many = pairs, 2 * pairs
    while not is_conclusive(many):
        few, many = many, 2 * many
        if many > MOST_QUESTIONS:
            return None
    while few + 1 < many:
        middle = (few + many) // 2
        few, many = (few, middle) if is_conclusive(middle) else (middle, many)
    return many
