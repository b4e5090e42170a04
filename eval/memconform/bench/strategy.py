"""How a system is asked to search: a mode and requested tuning."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from memconform.contract.core import Tuning
from memconform.contract.wire import JsonValue, Mode

_FUSION_KEYS = frozenset({"fusion", "alpha", "rrfK", "poolFactor", "poolFloor"})
"""Tuning keys that only affect modes that fuse legs."""
_FUSED_MODES = (Mode.HYBRID, Mode.HYBRID_RERANK)
_VECTOR_MODES = (Mode.SEMANTIC, *_FUSED_MODES)
COSINE = "cosine"
"""The kernel of a vector mode without `tuning.kernel` (core.rank.semantic)."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """A search mode with requested tuning."""

    mode: Mode | None
    """None for a system with a single way to search."""
    tuning: Mapping[str, JsonValue] = field(default_factory=dict)
    """By the contract's keys."""

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
    def requested_tuning(self) -> Tuning | None:
        """The tuning as a part of a search request; None without tuning."""
        return Tuning.model_validate(dict(self.tuning)) if self.tuning else None


def strategies(
    modes: Iterable[Mode], sweeps: Mapping[str, Sequence[JsonValue]]
) -> tuple[Strategy, ...]:
    """Every mode with every combination of the tuning values that affect it, without duplicates."""
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
            tuning = dict(zip(applicable, combination, strict=True))
            # A daemon does not echo parameters that its fusion ignores.
            tuning.pop("alpha" if tuning.get("fusion") == "rrf" else "rrfK", None)
            strategy = Strategy(mode, tuning)
            by_label[strategy.label] = strategy
    return tuple(by_label.values())
