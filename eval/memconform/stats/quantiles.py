"""Quantiles of latencies."""

from collections.abc import Iterable
from math import floor
from typing import NamedTuple


class Quantiles(NamedTuple):
    p50: float
    p95: float
    p99: float


def quantiles(values: Iterable[float]) -> Quantiles | None:
    """p50, p95 and p99 by linear interpolation (Hyndman & Fan 1996, type 7); None if empty."""
    ordered = sorted(values)
    if not ordered:
        return None
    return Quantiles(*(_quantile(ordered, q) for q in (0.50, 0.95, 0.99)))


def _quantile(ordered: list[float], q: float) -> float:
    place = q * (len(ordered) - 1)
    below = floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])
