"""Which stages of their mode searches skipped and why, as reports name and count it."""

from collections.abc import Iterable, Mapping
from typing import Any

from memconform.contract.wire import Mode, Response

_SHOWN_REASON = 60
"""Characters of a reason that a report shows."""
_MOST_REASONS = 20
"""Reasons that are counted apart; a daemon may invent one for each question."""


def skipped_stage(trace: Response | Mapping[str, Any]) -> str | None:
    """Which stage of its mode a search skipped and why, by its trace or a stored one, for a report;
    None if it skipped none, or gives no reason."""
    stored = trace.model_dump(mode="json", by_alias=True) if isinstance(trace, Response) else trace
    reranks = stored.get("effectiveMode") == Mode.HYBRID_RERANK
    skipped = (
        ("vectors", stored.get("embedderUsed") is False, "vectorSkipReason"),
        ("reranking", reranks and stored.get("reranked") is False, "rerankSkipReason"),
    )
    reasons = [
        f"{stage} ({_shown(stored[key])})"
        for stage, is_skipped, key in skipped
        if is_skipped and stored.get(key)
    ]
    return " and ".join(reasons) or None


def _shown(reason: object) -> str:
    return " ".join(str(reason).split())[:_SHOWN_REASON]


def count_skip(counts: dict[str, int], reason: str | None) -> None:
    """Count a stage that was skipped for a reason; None where none was."""
    if reason is not None:
        is_apart = reason in counts or len(counts) < _MOST_REASONS
        name = reason if is_apart else "other reasons"
        counts[name] = counts.get(name, 0) + 1


def count_skips(reasons: Iterable[str | None]) -> dict[str, int]:
    """Count all of them, as `count_skip` does."""
    counts: dict[str, int] = {}
    for reason in reasons:
        count_skip(counts, reason)
    return counts
