"""Scores that take the dates of documents into account (core.rank.recency, core.rank.temporal)."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from memoryd.moment import epoch_seconds
from memoryd.rank.rank import Hit, round_score

_DAY = 86_400


@dataclass(frozen=True, slots=True)
class Recency:
    """Prefers documents of a short time before `now`."""

    now: str
    relevance: float
    weight: float
    decay_days: float


@dataclass(frozen=True, slots=True)
class Temporal:
    """Prefers documents of about the time `at`."""

    at: str
    tolerance_days: float
    boost: float


def document_date(metadata: dict[str, Any]) -> int | None:
    """The document's date in seconds from 1970; None if `metadata.date` is no date."""
    value = metadata.get("date")
    try:
        return epoch_seconds(value) if isinstance(value, str) else None
    except ValueError:
        return None


def by_date(
    hits: list[Hit],
    date_of: Callable[[int], int | None],
    recency: Recency | None,
    temporal: Temporal | None,
) -> list[Hit]:
    """Score all fused hits again; `date_of` returns the date of a slot in seconds from 1970."""
    best = max((hit.score for hit in hits), default=0.0)
    scored = []
    for hit in hits:
        score, date = hit.score / best if best > 0 else 0.0, date_of(hit.slot)
        if recency is not None:
            decay = _decay(recency, date)
            score = round_score(recency.relevance * score + recency.weight * decay)
        if temporal is not None:
            score = round_score(score * (1.0 + temporal.boost * _proximity(temporal, date)))
        scored.append(Hit(hit.slot, score))
    return scored


def _decay(recency: Recency, date: int | None) -> float:
    """1 for a document of now or later, and 1/e for one that is `decay_days` old."""
    if date is None:
        return 0.0
    age = max(0, epoch_seconds(recency.now) - date) / _DAY
    # Rounded, because languages differ in the last bit of an exponential.
    return round_score(math.exp(-age / recency.decay_days))


def _proximity(temporal: Temporal, date: int | None) -> float:
    """1 within the tolerance of the target, falling to 0 at three times the tolerance."""
    if date is None:
        return 0.0
    tolerance = temporal.tolerance_days
    distance = abs(epoch_seconds(temporal.at) - date) / _DAY
    return min(1.0, max(0.0, 1.0 - (distance - tolerance) / (2.0 * tolerance)))
