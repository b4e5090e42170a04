"""Quantiles of latencies."""

from collections.abc import Iterable, Sequence
from math import floor
from typing import Self

from memconform.records import Record


class QuantileSummary(Record):
    """Median, 95th and 99th percentile, in the unit of the values."""

    p50: float
    p95: float
    p99: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Self | None:
        """Quantiles by linear interpolation (Hyndman & Fan 1996, type 7); None without values."""
        ordered = sorted(values)
        if not ordered:
            return None
        return cls(
            p50=quantile(ordered, 0.50),
            p95=quantile(ordered, 0.95),
            p99=quantile(ordered, 0.99),
        )


def quantile(ordered: Sequence[float], q: float) -> float:
    """The q-quantile of ascending values, by linear interpolation (Hyndman & Fan, type 7)."""
    position = q * (len(ordered) - 1)
    below = floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])
