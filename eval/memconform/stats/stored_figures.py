"""Whether a stored figure is the one that its parts give, and sums that rounding cannot change."""

from fractions import Fraction
from math import ulp

ULPS = 2**20
"""How many units in the last place a figure may differ from the recomputed one. Another order of
operations moves it by a few (`100 * (1 / 6) / 100` by one), a naive sum by one for each part; one
question more or less of a million, which is an edit, by 4 * 2**30."""


def is_same_figure(stated: float | None, actual: float | None) -> bool:
    """Whether two fractions, percentages or counts differ by rounding alone.

    Below 1 the units are those of 1: the ends of intervals are differences of numbers of that size.
    """
    if stated is None or actual is None:
        return stated is actual
    return abs(stated - actual) <= ULPS * ulp(max(1.0, abs(stated), abs(actual)))


class ExactMean:
    """A mean of floats that is the same whatever their order."""

    def __init__(self) -> None:
        self._sum = Fraction()
        self._count = 0

    def add(self, value: float) -> None:
        """Count one more value."""
        self._sum += Fraction(value)
        self._count += 1

    @property
    def value(self) -> float | None:
        """The mean, rounded once; None without values."""
        return float(self._sum / self._count) if self._count else None
