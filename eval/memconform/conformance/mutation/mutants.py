"""The mutants: each a good daemon with one thing broken, and the rule that it breaks."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from memconform.conformance import strict_yaml
from memconform.conformance.matrix import BadMatrixError, combinations
from memconform.conformance.mutation.derived import derived
from memconform.conformance.mutation.mutant import Mutant
from memconform.conformance.rules import rules
from memconform.conformance.variables import UnknownVariableError, filled
from memconform.errors import UsageError, nearest
from memconform.fakes.mutation import Mutation

TABLE = Path(__file__).with_name("table")


@cache
def mutants() -> tuple[Mutant, ...]:
    """Those of the table, then those that follow from the contract's shapes.

    Raises:
        UsageError: naming file and mutant, for what is wrong in one.
    """
    written = [mutant for path in sorted(TABLE.glob("*.yaml")) for mutant in _read(path)]
    found: dict[str, Mutant] = {}
    for mutant in (*written, *derived()):
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
