"""Two rates of the same questions: do they differ, and may they be called equal?

A pair of runs is counted as `first_only` (b) and `second_only` (c), the questions that one of them
alone passes, out of `pairs` (n) that both were measured on.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, lgamma, log, sqrt
from statistics import NormalDist

from memconform.stats.intervals import Interval

MOST_QUESTIONS = 100_000
"""Beyond it nobody asks, and `questions_to_settle` says that it knows no number."""


@dataclass(frozen=True, slots=True)
class McNemar:
    """Two-sided p values of equal rates; both are 1 where no question parts the runs."""

    exact: float
    mid_p: float
    """Half of what was seen counts (Fagerland, Lydersen & Laake 2013): exact is conservative."""


def mcnemar(first_only: int, second_only: int) -> McNemar:
    """Whether the questions that part two runs fall to both sides alike (McNemar 1947).

    Raises:
        ValueError: for a negative count.
    """
    if min(first_only, second_only) < 0:
        raise ValueError(f"counts of {first_only} and {second_only}")
    discordant = first_only + second_only
    if discordant == 0:
        return McNemar(1.0, 1.0)
    less = min(first_only, second_only)
    seen = _half_binomial(less, discordant)
    tail = _tail(less, discordant, seen)
    if first_only == second_only:
        return McNemar(1.0, 1 - seen / 2)
    return McNemar(min(1.0, 2 * tail), 2 * tail - seen)


def _half_binomial(k: int, n: int) -> float:
    """The probability of k heads in n throws of a coin."""
    return exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) - n * log(2))


def _tail(k: int, n: int, seen: float) -> float:
    """The probability of at most k heads, where that of k is known."""
    tail = term = seen
    while k > 0 and term > tail * 1e-17:
        term *= k / (n - k + 1)
        tail += term
        k -= 1
    return tail


def holm(p_values: Sequence[float]) -> list[float]:
    """p values adjusted for their number (Holm 1979), in the order given."""
    m = len(p_values)
    adjusted = [0.0] * m
    highest = 0.0
    for rank, place in enumerate(sorted(range(m), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (m - rank) * p_values[place]))
        adjusted[place] = highest
    return adjusted


def tango(first_only: int, second_only: int, pairs: int, confidence: float = 0.95) -> Interval:
    """The score interval of the rate of the first run less that of the second (Tango 1998).

    No pair tells nothing: the interval is then [-1, 1].

    Raises:
        ValueError: unless the counts fit into `pairs`, and 0 < confidence < 1.
    """
    if min(first_only, second_only) < 0 or first_only + second_only > pairs:
        raise ValueError(f"{first_only} and {second_only} of {pairs} pairs")
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence of {confidence} is outside (0, 1)")
    if pairs == 0:
        return Interval(-1.0, 1.0)
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    seen = (first_only - second_only) / pairs

    def distance(difference: float) -> float:
        return _score(first_only, second_only, pairs, difference)

    low = -1.0 if seen == -1 else _crossing(lambda d: distance(d) - z, -1.0, seen)
    high = 1.0 if seen == 1 else _crossing(lambda d: distance(d) + z, seen, 1.0)
    return Interval(low, high)


def _score(b: int, c: int, n: int, difference: float) -> float:
    """Tango's statistic: standard errors between what was seen and a difference; it falls."""
    linear = -b - c + (2 * n - b + c) * difference
    constant = -c * difference * (1 - difference)
    # The second run's share of discordant pairs that is likeliest at this difference.
    share = (sqrt(max(0.0, linear * linear - 8 * n * constant)) - linear) / (4 * n)
    variance = n * (2 * share + difference * (1 - difference))
    distance = b - c - n * difference
    if variance <= 0:
        return 0.0 if distance == 0 else distance * float("inf")
    return distance / sqrt(variance)


def _crossing(falling: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function is 0, by halving to the last bit."""
    while low < (middle := (low + high) / 2) < high:
        if falling(middle) > 0:
            low = middle
        else:
            high = middle
    return middle


def equivalent(first_only: int, second_only: int, pairs: int, margin: float, alpha: float) -> bool:
    """Whether the rates are within `margin` of each other, by two one-sided tests at `alpha`.

    That is whether the score interval of confidence 1 - 2 alpha lies inside (Schuirmann 1987).
    """
    low, high = tango(first_only, second_only, pairs, 1 - 2 * alpha)
    return -margin < low and high < margin


def questions_to_settle(
    first_only: int, second_only: int, pairs: int, *, margin: float, alpha: float, tests: int = 1
) -> int | None:
    """About how many questions would do, if more of them part the runs at the rates seen so far.

    A number at which either the mid-p is below `alpha / tests` or the rates are equivalent at
    `alpha`; some less may do, for counts are whole. None where `MOST_QUESTIONS` would not do, or
    nothing was seen. Rates of 0 count as half a question, for a rate of 0 is never known.
    """
    if pairs == 0:
        return None
    rates = [max(count, 0.5) / pairs for count in (first_only, second_only)]
    if first_only == second_only:
        rates = [sum(rates) / 2] * 2

    def settled(n: int) -> bool:
        b = min(n, round(rates[0] * n))
        c = min(n - b, round(rates[1] * n))
        return mcnemar(b, c).mid_p < alpha / tests or equivalent(b, c, n, margin, alpha)

    few, many = pairs, 2 * pairs
    while not settled(many):
        few, many = many, 2 * many
        if many > MOST_QUESTIONS:
            return None
    while few + 1 < many:
        middle = (few + many) // 2
        few, many = (few, middle) if settled(middle) else (middle, many)
    return many
