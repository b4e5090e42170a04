"""How a system is asked to search: a mode, and wishes for its tuning."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from memconform.contract.core import Tuning
from memconform.contract.wire import JsonValue, Mode

_OF_FUSION = frozenset({"fusion", "alpha", "rrfK", "poolFactor", "poolFloor"})
"""Wishes that mean something only where legs are fused."""
_FUSED = (Mode.HYBRID, Mode.HYBRID_RERANK)


@dataclass(frozen=True, slots=True)
class Strategy:
    mode: Mode | None
    """None of a system that knows one way only."""
    tuning: Mapping[str, JsonValue] = field(default_factory=dict)
    """By the contract's keys."""

    @property
    def label(self) -> str:
        wishes = (
            f"{key}={value if isinstance(value, str) else json.dumps(value)}"
            for key, value in self.tuning.items()
        )
        return " ".join([self.mode.value if self.mode else "", *wishes]).strip()

    @property
    def wishes(self) -> Tuning | None:
        return Tuning.model_validate(dict(self.tuning)) if self.tuning else None


def strategies(
    modes: Iterable[Mode], sweeps: Mapping[str, Sequence[JsonValue]]
) -> tuple[Strategy, ...]:
    """Every mode with every combination of the wishes that concern it, each once."""
    found: dict[str, Strategy] = {}
    for mode in modes:
        concerned = {
            key: values
            for key, values in sweeps.items()
            if values and (key not in _OF_FUSION or mode in _FUSED)
        }
        for combination in product(*concerned.values()):
            tuning = dict(zip(concerned, combination, strict=True))
            # A daemon does not echo what its fusion does not go by.
            tuning.pop("alpha" if tuning.get("fusion") == "rrf" else "rrfK", None)
            strategy = Strategy(mode, tuning)
            found[strategy.label] = strategy
    return tuple(found.values())
