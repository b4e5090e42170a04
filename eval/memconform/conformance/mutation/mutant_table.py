"""Reads the table of mutants and combines it with the derived ones."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from memconform.conformance import strict_yaml
from memconform.conformance.catalog import catalog
from memconform.conformance.matrix import BadMatrixError, combinations
from memconform.conformance.mutation.derived import derived_mutants
from memconform.conformance.mutation.mutant import Mutant
from memconform.conformance.mutation.mutation import Mutation
from memconform.conformance.rules import rules
from memconform.conformance.variables import UnknownVariableError, substitute
from memconform.errors import UsageError, nearest

TABLE = Path(__file__).with_name("table")

UNSCORED = Path(__file__).with_name("unscored")
"""Mutants that the published score does not cover yet; checks may name them by `same_as`."""


@cache
def mutants() -> tuple[Mutant, ...]:
    """Return the mutants that the suite as a whole must detect: the table's, then the derived ones.

    Raises:
        UsageError: `mutant_invalid`, naming file and mutant.
    """
    return _require_unique(m for m in (*_table(), *derived_mutants()) if m.finder is None)


@cache
def unscored_mutants() -> tuple[Mutant, ...]:
    """Return the mutants that the published score does not cover yet.

    Raises:
        UsageError: `mutant_invalid`, naming file and mutant.
    """
    return _require_unique(read_table(UNSCORED))


@cache
def check_mutants() -> tuple[Mutant, ...]:
    """Return the mutants that one particular check each must detect, at least one for each case.

    They do not measure the suite, because each was written for an existing check.

    Raises:
        UsageError: `mutant_invalid`, naming file and mutant.
    """
    return _require_unique(mutant for mutant in _table() if mutant.finder is not None)


def _require_unique(candidates: Iterable[Mutant]) -> tuple[Mutant, ...]:
    by_id: dict[str, Mutant] = {}
    for mutant in candidates:
        if mutant.id in by_id:
            raise UsageError(f"two mutants have the id {mutant.id}", code="mutant_invalid")
        by_id[mutant.id] = mutant
    return tuple(by_id.values())


@cache
def _table() -> tuple[Mutant, ...]:
    return read_table(TABLE, unscored_mutants())


def mutants_of_table(table: Path, *, for_checks: bool = False) -> tuple[Mutant, ...]:
    """Return the mutants of a table outside the package, a file or a folder.

    Args:
        table: The table.
        for_checks: Whether to return those that one particular check each must detect, instead of
            the others.

    Raises:
        UsageError: as `read_table`.
    """
    return _require_unique(m for m in read_table(table) if (m.finder is not None) is for_checks)


def read_table(table: Path, others: Sequence[Mutant] = ()) -> tuple[Mutant, ...]:
    """Read the mutants of a file or of all files of a folder, those for single checks last.

    Args:
        table: The file or folder.
        others: Mutants that `same_as` may name besides its own and the derived ones.

    Raises:
        UsageError: `yaml_unreadable`, `yaml_invalid`, or `mutant_invalid` naming file and mutant.
    """
    files = sorted(table.glob("*.yaml")) if table.is_dir() else [table]
    rows = [(path.name, raw) for path in files for raw in _rows(path)]
    general = [mutant for file, raw in rows if "check" not in raw for mutant in _read(file, raw)]
    by_id = {mutant.id: mutant for mutant in (*general, *derived_mutants(), *others)}
    specific = [_check_mutant(file, raw, by_id) for file, raw in rows if "check" in raw]
    return (*general, *specific)


def _rows(path: Path) -> list[dict[str, Any]]:
    content = strict_yaml.load_yaml(path)
    if not isinstance(content, list) or not all(isinstance(row, dict) for row in content):
        raise UsageError(f"{path.name}: must be a list of mutants", code="mutant_invalid")
    return content


def _read(file: str, raw: dict[str, Any]) -> Iterator[Mutant]:
    name = str(raw.get("id", "?"))
    try:
        for label, values in combinations(raw.get("matrix") or {}):
            content = {key: value for key, value in raw.items() if key != "matrix"}
            full = f"{name}[{label}]" if label else name
            # Without a matrix `${…}` is what it is in the patched source.
            yield _mutant(file, full, substitute(content, values) if values else content)
    except (BadMatrixError, UnknownVariableError, ValidationError) as error:
        raise _fault(file, name, str(error)) from error


def _check_mutant(file: str, raw: dict[str, Any], by_id: Mapping[str, Mutant]) -> Mutant:
    check = str(raw["check"])
    case, _, slot = check.partition("#")
    entry = next((variant for variant in catalog() if case in (variant.id, variant.base)), None)
    if entry is None or slot not in entry.slots():
        raise _fault(file, check, "no case has this check")
    fields = {key: value for key, value in raw.items() if key not in ("check", "same_as")}
    other = by_id.get(raw["same_as"]) if "same_as" in raw else None
    if "same_as" in raw and (other is None or fields):
        raise _fault(
            file, check, f"same_as must be the id of a mutant, without other keys: {raw['same_as']}"
        )
    try:
        mutation = other.mutation if other is not None else Mutation.model_validate(fields)
    except ValidationError as error:
        raise _fault(file, check, str(error)) from error
    rule = entry.case.rules[0]
    return Mutant(
        id=f"{entry.base}.{slot}",
        rule=rule,
        profile=rules()[rule].profile,
        breaks=other.breaks if other is not None else f"what {entry.id}#{slot} checks",
        mutation=mutation,
        finder=entry,
        slot=slot,
    )


def _mutant(file: str, name: str, raw: dict[str, Any]) -> Mutant:
    missing = [key for key in ("id", "rule", "breaks") if not isinstance(raw.get(key), str)]
    if missing:
        raise _fault(file, name, f"{missing[0]}: must be a string")
    rule, breaks = raw["rule"], raw["breaks"]
    if rule not in rules():
        raise _fault(file, name, f"CONTRACT.md has no rule {rule!r}; {nearest(rule, rules())}")
    fields = {key: v for key, v in raw.items() if key not in ("id", "rule", "breaks")}
    return Mutant(name, rule, rules()[rule].profile, breaks, Mutation.model_validate(fields))


def _fault(file: str, name: str, why: str) -> UsageError:
    return UsageError(f"{file}: mutant {name}: {why.rstrip('; ')}", code="mutant_invalid")
