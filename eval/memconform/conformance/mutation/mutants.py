"""The mutants: each a good daemon with one thing broken, and the rule that it breaks."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from memconform.conformance import strict_yaml
from memconform.conformance.matrix import BadMatrixError, combinations
from memconform.conformance.mutation.derived import derived
from memconform.conformance.rules import ROBUSTNESS, rules
from memconform.conformance.variables import UnknownVariableError, filled
from memconform.contract.wire import Profile
from memconform.errors import UsageError, nearest
from memconform.fakes.mutation import Mutation

TABLE = Path(__file__).with_name("table")


@dataclass(frozen=True, slots=True)
class Mutant:
    id: str
    rule: str
    """The one that it breaks."""
    profile: Profile | None
    """Whose part of the contract it is in; None: everyone's."""
    breaks: str
    """What the daemon does, in words."""
    mutation: Mutation

    @property
    def level(self) -> str:
        return rules()[self.rule].level

    @property
    def profile_name(self) -> str:
        return self.profile.value if self.profile is not None else ROBUSTNESS


@cache
def mutants() -> tuple[Mutant, ...]:
    """Those of the table, then those that follow from the contract's shapes.

    Raises:
        UsageError: naming file and mutant, for what is wrong in one.
    """
    written = [mutant for path in sorted(TABLE.glob("*.yaml")) for mutant in _read(path)]
    followed = [Mutant(d.id, d.rule, d.profile, d.breaks, d.mutation) for d in derived()]
    found: dict[str, Mutant] = {}
    for mutant in (*written, *followed):
        if mutant.id in found:
            raise UsageError(f"two mutants are called {mutant.id}", code="mutant_invalid")
        found[mutant.id] = mutant
    return tuple(found.values())


def _read(path: Path) -> Iterator[Mutant]:
    for raw in strict_yaml.load(path):
        name = str(raw.get("id", "?"))
        try:
            for label, values in combinations(raw.get("matrix") or {}):
                kept = {key: value for key, value in raw.items() if key != "matrix"}
                full = f"{name}[{label}]" if label else name
                yield _mutant(path.name, full, filled(kept, values))
        except (BadMatrixError, UnknownVariableError, ValidationError, KeyError) as error:
            raise _fault(path.name, name, str(error)) from error


def _mutant(file: str, name: str, raw: dict[str, Any]) -> Mutant:
    rule, breaks = raw["rule"], raw["breaks"]
    if rule not in rules():
        raise _fault(file, name, f"no rule {rule!r} in CONTRACT.md; {nearest(rule, rules())}")
    given = {key: v for key, v in raw.items() if key not in ("id", "rule", "breaks")}
    return Mutant(name, rule, rules()[rule].profile, breaks, Mutation.model_validate(given))


def _fault(file: str, name: str, why: str) -> UsageError:
    return UsageError(f"{file}: mutant {name}: {why.rstrip('; ')}", code="mutant_invalid")
