"""How a system is asked to search: a mode and requested tuning."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from memconform.client.failures import CallError
from memconform.contract.core import Recency, Temporal, Tuning
from memconform.contract.wire import JsonValue, Mode
from memconform.datasets.question import Question
from memconform.datasets.time_phrases import days_before, time_reference, to_date_time, to_rfc3339

_DATE_KEYS = frozenset({"recency", "temporal"})
"""Tuning keys that a strategy has as one number, and a request with the dates of its query."""
_FUSION_KEYS = frozenset({"fusion", "alpha", "rrfK", "poolFactor", "poolFloor"}) | _DATE_KEYS
"""Tuning keys that only affect modes that fuse legs."""
_FUSED_MODES = (Mode.HYBRID, Mode.HYBRID_RERANK)
_VECTOR_MODES = (Mode.SEMANTIC, *_FUSED_MODES)
MOST_RECENCY = 0.85
"""What relevance and recency share; the other 0.15 memini gives to importance, which its benchmark
does not vary."""
_DECAY_DAYS = 7
"""The age in days at which memini's recency is 1/e."""
COSINE = "cosine"
"""The kernel of a vector mode without `tuning.kernel` (core.rank.semantic)."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """A search mode with requested tuning."""

    mode: Mode | None
    """None for a system with a single way to search."""
    tuning: Mapping[str, JsonValue] = field(default_factory=dict)
    """By the contract's keys; `recency` is its weight alone, and `temporal` its boost."""

    @property
    def label(self) -> str:
        """The name in reports, such as `hybrid alpha=0.3`."""
        settings = (
            f"{key}={value if isinstance(value, str) else json.dumps(value)}"
            for key, value in self.tuning.items()
        )
        return " ".join([self.mode.value if self.mode else "", *settings]).strip()

    @property
    def kernel(self) -> str | None:
        """What makes a score of two vectors; None if the mode does not, or `auto` may not."""
        return str(self.tuning.get("kernel", COSINE)) if self.mode in _VECTOR_MODES else None

    @property
    def needs_dates(self) -> bool:
        """Whether it ranks by the dates of documents and queries."""
        return not _DATE_KEYS.isdisjoint(self.tuning)

    def requested_tuning(self, query: Question) -> Tuning | None:
        """The tuning as a part of a search request; None without tuning.

        Recency has the weights of memini's benchmark: 0.85 - w for relevance and w for recency.
        Temporal is only requested for a question with a phrase that refers to a time.

        Raises:
            CallError: if it needs the query's date and there is none (`no_question_date`).
        """
        tuning: dict[str, object] = {k: v for k, v in self.tuning.items() if k not in _DATE_KEYS}
        if self.needs_dates:
            tuning.update(self._dated(query))
        return Tuning.model_validate(tuning) if tuning else None

    def _dated(self, query: Question) -> Iterator[tuple[str, object]]:
        now = to_date_time(query.question_date)
        if now is None:
            raise CallError("no_question_date", f"{query.question_date!r} is not a date")
        if (weight := self.tuning.get("recency")) is not None:
            relevance = round(MOST_RECENCY - float(str(weight)), 9)
            yield (
                "recency",
                Recency(
                    now=to_rfc3339(now),
                    relevance=relevance,
                    weight=float(str(weight)),
                    decay_days=_DECAY_DAYS,
                ),
            )
        boost, reference = self.tuning.get("temporal"), time_reference(query.question)
        if boost is not None and reference is not None:
            at = to_rfc3339(days_before(now, reference.days))
            yield (
                "temporal",
                Temporal(at=at, tolerance_days=reference.tolerance, boost=float(str(boost))),
            )


def strategies(
    modes: Iterable[Mode], sweeps: Mapping[str, Sequence[JsonValue]]
) -> tuple[Strategy, ...]:
    """Every mode with every combination of the tuning values that affect it, without duplicates.

    The value None stands for a row without the key.
    """
    by_label: dict[str, Strategy] = {}
    for mode in modes:
        applicable = {
            key: values
            for key, values in sweeps.items()
            if values
            and (key not in _FUSION_KEYS or mode in _FUSED_MODES)
            and (key != "kernel" or mode in _VECTOR_MODES)
        }
        for combination in product(*applicable.values()):
            chosen = zip(applicable, combination, strict=True)
            tuning = {key: value for key, value in chosen if value is not None}
            # A daemon does not echo parameters that its fusion ignores.
            tuning.pop("alpha" if tuning.get("fusion") == "rrf" else "rrfK", None)
            strategy = Strategy(mode, tuning)
            by_label[strategy.label] = strategy
    return tuple(by_label.values())
