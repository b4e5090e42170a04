"""Quantiles of latencies."""

from collections.abc import Iterable
from math import floor
from typing import Self

from memconform.records import Record


class QuantileSummary(Record):
    p50: float
    p95: float
    p99: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Self | None:
        """By linear interpolation (Hyndman & Fan 1996, type 7); None without values."""
        ordered = sorted(values)
        if not ordered:
            return None
        return cls(
            p50=_quantile(ordered, 0.50),
            p95=_quantile(ordered, 0.95),
            p99=_quantile(ordered, 0.99),
        )


def _quantile(ordered: list[float], q: float) -> float:
    place = q * (len(ordered) - 1)
    below = floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])
