"""Reads files of cases and expands their matrices; what a case is, its own room says."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memconform.conformance import strict_yaml
from memconform.conformance.matrix import BadMatrixError, combinations
from memconform.conformance.rules import rules
from memconform.conformance.variables import UnknownVariableError, references, substitute
from memconform.errors import UsageError, nearest


@dataclass(frozen=True, slots=True)
class RawVariant:
    """A case as it is written, with one combination of the values of its matrix."""

    id: str
    """`case`, or `case[label,label]`."""
    base: str
    """Id of the case, without the labels."""
    content: Any
    """What the case says, without its matrix, whose variables are filled in."""
    variables: dict[str, Any]
    """Values of the matrix variables."""
    file: str
    """Name of the case file."""


def raw_variants(folder: Path) -> Iterator[RawVariant]:
    """Yield the variants of all cases of a folder, in the order of files and of their contents.

    Raises:
        UsageError: `no_cases` if there is none; `yaml_unreadable`, `yaml_invalid` or
            `case_invalid`, naming file and case, if a file is invalid.
    """
    paths = sorted(folder.glob("*.yaml"))
    if not paths:
        raise UsageError(
            f"{folder} has no cases", code="no_cases", hint="case files are named *.yaml"
        )
    files: dict[str, str] = {}
    for path in paths:
        for variant in _read(path):
            other = files.setdefault(variant.base, path.name)
            if other != path.name:
                raise case_fault(path.name, variant.base, f"{other} has a case with the same id")
            yield variant


def case_line(file: str, base: str, folder: Path) -> int:
    """Return the line, from 1, at which a case begins in its file.

    Raises:
        UsageError: as `raw_variants` does.
    """
    path = folder / file
    cases: Any = strict_yaml.load_yaml(path)
    ids = [case["id"] for case in cases]
    return strict_yaml.item_lines(path)[ids.index(base)]


def require_rules(file: str, name: str, cited: list[str]) -> None:
    """Raise UsageError `case_invalid` if a case cites a rule that CONTRACT.md does not have."""
    for rule in cited:
        if rule not in rules():
            why = f"CONTRACT.md has no rule {rule!r}; {nearest(rule, rules())}"
            raise case_fault(file, name, why)


def case_fault(file: str, name: str, why: str) -> UsageError:
    """The error of an invalid case."""
    return UsageError(
        f"{file}: case {name}: {why.rstrip('; ')}",
        code="case_invalid",
        hint="see memconform conform lint --schema",
    )


def _read(path: Path) -> Iterator[RawVariant]:
    cases = strict_yaml.load_yaml(path)
    if not isinstance(cases, list):
        raise case_fault(path.name, "?", "a case file must be a list")
    seen: set[str] = set()
    for raw in cases:
        name = str(raw.get("id", "?")) if isinstance(raw, dict) else "?"
        if not isinstance(raw, dict):
            raise case_fault(path.name, name, "a case must be a mapping")
        if name in seen:
            raise case_fault(path.name, name, "the id is used twice")
        seen.add(name)
        yield from _expand(path.name, name, raw)


def _expand(file: str, name: str, raw: dict[str, Any]) -> Iterator[RawVariant]:
    matrix = raw.get("matrix") or {}
    content = {key: value for key, value in raw.items() if key != "matrix"}
    try:
        variants = list(combinations(matrix))
        used = {reference.partition(".")[0] for reference in references(content)}
    except BadMatrixError as error:
        raise case_fault(file, name, f"matrix: {error}") from error
    except UnknownVariableError as error:
        raise case_fault(file, name, str(error)) from error
    for dimension in matrix:
        if dimension not in used:
            raise case_fault(file, name, f"matrix: ${{{dimension}}} is never used")
    for label, variables in variants:
        full = f"{name}[{label}]" if label else name
        try:
            filled = substitute(content, variables, partly=True)
        except UnknownVariableError as error:
            raise case_fault(file, full, str(error)) from error
        yield RawVariant(full, name, filled, variables, file)
