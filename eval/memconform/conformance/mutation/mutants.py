"""The mutants: each a good daemon with one thing broken, and the rule that it breaks."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from memconform.conformance import strict_yaml
from memconform.conformance.catalog import catalog
from memconform.conformance.matrix import BadMatrixError, combinations
from memconform.conformance.mutation.derived import derived
from memconform.conformance.mutation.mutant import Mutant
from memconform.conformance.rules import rules
from memconform.conformance.variables import UnknownVariableError, substitute
from memconform.errors import UsageError, nearest
from memconform.fakes.mutation import Mutation

TABLE = Path(__file__).with_name("table")


@cache
def mutants() -> tuple[Mutant, ...]:
    """Those that the suite as a whole must find: of the table, then of the contract's shapes.

    Raises:
        UsageError: naming file and mutant, for what is wrong in one.
    """
    return _named(mutant for mutant in (*_table(), *derived()) if mutant.finder is None)


@cache
def mutants_of_checks() -> tuple[Mutant, ...]:
    """Those that one check each must find: for every case one at least.

    No measure of the suite, for each was made for a check that was there.

    Raises:
        UsageError: naming file and mutant, for what is wrong in one.
    """
    return _named(mutant for mutant in _table() if mutant.finder is not None)


def _named(every: Iterable[Mutant]) -> tuple[Mutant, ...]:
    found: dict[str, Mutant] = {}
    for mutant in every:
        if mutant.id in found:
            raise UsageError(f"two mutants are called {mutant.id}", code="mutant_invalid")
        found[mutant.id] = mutant
    return tuple(found.values())


@cache
def _table() -> tuple[Mutant, ...]:
    return table_of(TABLE)


def table_of(folder: Path) -> tuple[Mutant, ...]:
    """The mutants of all files of a folder, those of checks last.

    Raises:
        UsageError: naming file and mutant, for what is wrong in one.
    """
    files = sorted(folder.glob("*.yaml"))
    rows = [(path.name, raw) for path in files for raw in strict_yaml.load_yaml(path)]
    thought_of = [mutant for file, raw in rows if "check" not in raw for mutant in _read(file, raw)]
    known = {mutant.id: mutant for mutant in (*thought_of, *derived())}
    of_checks = [_of_check(file, raw, known) for file, raw in rows if "check" in raw]
    return (*thought_of, *of_checks)


def _read(file: str, raw: dict[str, Any]) -> Iterator[Mutant]:
    name = str(raw.get("id", "?"))
    try:
        for label, values in combinations(raw.get("matrix") or {}):
            kept = {key: value for key, value in raw.items() if key != "matrix"}
            full = f"{name}[{label}]" if label else name
            yield _mutant(file, full, substitute(kept, values))
    except (BadMatrixError, UnknownVariableError, ValidationError, KeyError) as error:
        raise _fault(file, name, str(error)) from error


def _of_check(file: str, raw: dict[str, Any], known: Mapping[str, Mutant]) -> Mutant:
    check = str(raw["check"])
    case, _, slot = check.partition("#")
    entry = next((each for each in catalog() if case in (each.id, each.base)), None)
    if entry is None or slot not in entry.slots():
        raise _fault(file, check, "no case has such a check")
    given = {key: value for key, value in raw.items() if key not in ("check", "same_as")}
    other = known.get(raw["same_as"]) if "same_as" in raw else None
    if "same_as" in raw and (other is None or given):
        raise _fault(file, check, f"same_as names no mutant, or not alone: {raw['same_as']}")
    try:
        mutation = other.mutation if other is not None else Mutation.model_validate(given)
    except ValidationError as error:
        raise _fault(file, check, str(error)) from error
    rule = entry.case.rules[0]
    return Mutant(
        id=f"{entry.base}.{slot}",
        rule=rule,
        profile=rules()[rule].profile,
        breaks=other.breaks if other is not None else f"what {entry.id}#{slot} is about",
        mutation=mutation,
        finder=entry,
        slot=slot,
    )


def _mutant(file: str, name: str, raw: dict[str, Any]) -> Mutant:
    rule, breaks = raw["rule"], raw["breaks"]
    if rule not in rules():
        raise _fault(file, name, f"no rule {rule!r} in CONTRACT.md; {nearest(rule, rules())}")
    given = {key: v for key, v in raw.items() if key not in ("id", "rule", "breaks")}
    return Mutant(name, rule, rules()[rule].profile, breaks, Mutation.model_validate(given))


def _fault(file: str, name: str, why: str) -> UsageError:
    return UsageError(f"{file}: mutant {name}: {why.rstrip('; ')}", code="mutant_invalid")
