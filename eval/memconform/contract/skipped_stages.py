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
    None if it skipped none."""
    stored = trace.model_dump(mode="json", by_alias=True) if isinstance(trace, Response) else trace
    if stored.get("effectiveMode") != Mode.HYBRID_RERANK or stored.get("reranked") is not False:
        return None
    reason = stored.get("rerankSkipReason")
    return f"reranking ({_shown(reason)})" if reason else None


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
