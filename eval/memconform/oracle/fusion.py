"""Rounding, kernel, fusion and dates (core.search.order, core.rank.*). Pure."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from memconform.oracle.dates import DAY, seconds

Key = TypeVar("Key")


def rounded(score: float) -> float:
    """Round to 1e-9."""
    return math.floor(score * 1e9 + 0.5) / 1e9


def inverse_l2(cosine: float) -> float:
    """The score of a rounded cosine with the kernel `inverse-l2`, rounded."""
    return rounded(1 / (1 + math.sqrt(max(0.0, 2 - 2 * cosine))))


def minmax(
    keyword: Mapping[Key, float], semantic: Mapping[Key, float], alpha: float
) -> dict[Key, float]:
    """Fuse two legs of rounded scores, each scaled to [0, 1]."""
    left, right = _scaled(keyword), _scaled(semantic)
    return {
        key: rounded(alpha * right.get(key, 0.0) + (1 - alpha) * left.get(key, 0.0))
        for key in {**left, **right}
    }


def _scaled(leg: Mapping[Key, float]) -> dict[Key, float]:
    low, high = min(leg.values(), default=0.0), max(leg.values(), default=0.0)
    return {key: (score - low) / (high - low) if high > low else 1.0 for key, score in leg.items()}


def rrf(keyword: Sequence[Key], semantic: Sequence[Key], k: int) -> dict[Key, float]:
    """Fuse two rankings by the sum of 1 / (k + rank), with ranks from 0."""
    total: dict[Key, float] = {}
    for leg in (keyword, semantic):
        for rank, key in enumerate(leg):
            total[key] = total.get(key, 0.0) + 1 / (k + rank)
    return {key: rounded(score) for key, score in total.items()}


def dated(
    fused: Mapping[Key, float],
    dates: Mapping[Key, int | None],
    recency: Mapping[str, Any] | None,
    temporal: Mapping[str, Any] | None,
) -> dict[Key, float]:
    """Score fused chunks by their dates, in seconds from 1970 (core.rank.recency, .temporal)."""
    best = max(fused.values(), default=0.0)
    scores = {}
    for key, fused_score in fused.items():
        score = fused_score / best if best else 0.0
        if recency is not None:
            decay = _decay(dates[key], recency)
            score = rounded(recency["relevance"] * score + recency["weight"] * decay)
        if temporal is not None:
            score = rounded(score * (1 + temporal["boost"] * _proximity(dates[key], temporal)))
        scores[key] = score
    return scores


def _decay(date: int | None, recency: Mapping[str, Any]) -> float:
    if date is None:
        return 0.0
    age = max(0, _seconds(recency["now"]) - date) / DAY
    return rounded(math.exp(-age / recency["decayDays"]))


def _proximity(date: int | None, temporal: Mapping[str, Any]) -> float:
    if date is None:
        return 0.0
    distance, tolerance = abs(_seconds(temporal["at"]) - date) / DAY, temporal["toleranceDays"]
    return float(min(1.0, max(0.0, 1 - (distance - tolerance) / (2 * tolerance))))


def _seconds(text: str) -> int:
    value = seconds(text)
    if value is None:
        raise ValueError(f"{text!r} is not a date")
    return value
