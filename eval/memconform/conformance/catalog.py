"""All cases: read from their files, matrices filled in, held to the contract's rules."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from memconform.conformance import strict_yaml
from memconform.conformance.case import BaseStep, Case, ProcessStep
from memconform.conformance.matrix import BadMatrixError, combinations
from memconform.conformance.names import CASES
from memconform.conformance.rules import rules
from memconform.conformance.variables import UnknownVariableError, references, substitute
from memconform.contract.wire import JsonValue, Profile
from memconform.errors import UsageError, nearest
from memconform.validation import validation_faults

BUILT_IN = frozenset(
    {"brain", "brain_url", "host", "address", "outside", "run_id", "state", "index", "other_brain"}
)
"""What every case may refer to: see `scene.CaseContext`."""

_NAMES = ("capture", "matrix")


@dataclass(frozen=True, slots=True)
class CaseVariant:
    """A case with one combination of its matrix."""

    id: str
    """`case`, or `case[name,name]`."""
    base: str
    case: Case
    variables: dict[str, Any]
    file: str

    @property
    def profile(self) -> Profile | None:
        """That of its first rule, by which cases are selected."""
        return rules()[self.case.rules[0]].profile

    @property
    def needed_profiles(self) -> list[Profile]:
        """Those of all its rules, and what it names besides."""
        cited = [rules()[rule].profile for rule in self.case.rules]
        return [profile for profile in (*cited, *self.case.profiles) if profile is not None]

    @property
    def is_disruptive(self) -> bool:
        """Whether it ends or starts daemons, so that no other case can run meanwhile."""
        return any(
            isinstance(step, ProcessStep) and step.process != "inspect"
            for step in walk_steps(self.case)
        )

    def slots(self) -> list[str]:
        """The slots of all its checks, in order."""
        return [slot for step in walk_steps(self.case) for slot in step.expect]


def walk_steps(case: Case) -> Iterator[BaseStep]:
    """Every step of a case, those inside others included."""

    def walk(steps: list[Any]) -> Iterator[BaseStep]:
        for step in steps:
            yield step
            for name in ("until", "repeat"):
                yield from walk(getattr(step, name, []))
            for branch in getattr(step, "parallel", []):
                yield from walk(branch)

    for steps in (case.setup, case.steps, case.teardown):
        yield from walk(steps)


@cache
def catalog(folder: Path = CASES) -> tuple[CaseVariant, ...]:
    """Every case there is, in the order of files and of their content.

    Raises:
        UsageError: naming file and case, for what is wrong in one.
    """
    entries = [e for path in sorted(folder.glob("*.yaml")) for e in _read(path)]
    if not entries:
        raise UsageError(
            f"{folder} has no case", code="no_cases", hint="cases are in files named *.yaml"
        )
    first: dict[str, CaseVariant] = {}
    for entry in entries:
        known = first.setdefault(entry.base, entry)
        if known.file != entry.file or known.case.title != entry.case.title:
            raise _fault(entry.file, entry.base, f"{known.file} has a case of that id too")
    return tuple(entries)


def _read(path: Path) -> Iterator[CaseVariant]:
    loaded = strict_yaml.load_yaml(path)
    if not isinstance(loaded, list):
        raise _fault(path.name, "?", "a file of cases is a list")
    seen: set[str] = set()
    for raw in loaded:
        name = str(raw.get("id", "?")) if isinstance(raw, dict) else "?"
        if not isinstance(raw, dict):
            raise _fault(path.name, name, "a case is a mapping")
        if name in seen:
            raise _fault(path.name, name, "stands here twice")
        seen.add(name)
        yield from _expanded(path.name, name, raw)


def _expanded(file: str, name: str, raw: dict[str, Any]) -> Iterator[CaseVariant]:
    matrix = raw.get("matrix") or {}
    try:
        found = list(combinations(matrix))
    except BadMatrixError as error:
        raise _fault(file, name, f"matrix: {error}") from error
    rest = {key: value for key, value in raw.items() if key != "matrix"}
    used = {name.partition(".")[0] for name in _references(file, name, rest)}
    for dimension in matrix:
        if dimension not in used:
            raise _fault(file, name, f"matrix: nothing refers to ${{{dimension}}}")
    for label, variables in found:
        yield _entry(file, name, f"{name}[{label}]" if label else name, raw, variables)


def _references(file: str, name: str, raw: dict[str, Any]) -> list[str]:
    try:
        return references(raw)
    except UnknownVariableError as error:
        raise _fault(file, name, str(error)) from error


def _entry(
    file: str, base: str, full: str, raw: dict[str, Any], variables: dict[str, Any]
) -> CaseVariant:
    kept = {key: value for key, value in raw.items() if key != "matrix"}
    try:
        case = Case.model_validate(substitute(kept, variables, partly=True))
        _check_variables(case)
    except ValidationError as error:
        raise _fault(file, full, "\n".join(validation_faults(error))) from error
    except UnknownVariableError as error:
        raise _fault(file, full, str(error)) from error
    for rule in case.rules:
        if rule not in rules():
            raise _fault(file, full, f"no rule {rule!r} in CONTRACT.md; {nearest(rule, rules())}")
    entry = CaseVariant(full, base, case, variables, file)
    slots = entry.slots()
    if not slots:
        raise _fault(file, full, "it expects nothing, and so could not fail")
    twice = sorted({slot for slot in slots if slots.count(slot) > 1})
    if twice:
        raise _fault(file, full, f"the slot {twice[0]!r} stands in two steps")
    return entry


def _check_variables(case: Case) -> None:
    """Raise UnknownVariableError for a reference that nothing before it defines, or a capture
    that nothing refers to."""
    known, used = set(BUILT_IN), set[str]()
    _known_references([case.documents, case.daemon.env], known)
    for step in walk_steps(case):
        inner = {"until", "repeat", "parallel", "expect"}
        own = step.model_dump(by_alias=True, exclude=inner, exclude_unset=True)
        used |= _known_references(own, known)
        known |= set(step.capture)
        expected = [e.model_dump(by_alias=True, exclude_unset=True) for e in step.expect.values()]
        used |= _known_references(expected, known)
    for name in sorted(known - BUILT_IN - used):
        raise UnknownVariableError(f"{name} is captured, and nothing refers to it")


def _known_references(value: JsonValue, known: set[str]) -> set[str]:
    """The variables that `value` refers to; raises UnknownVariableError for one that is not."""
    found = set()
    for name in references(value):
        variable = name.partition(".")[0]
        if variable not in known:
            raise UnknownVariableError(f"${{{name}}} is not known here; {nearest(name, known)}")
        found.add(variable)
    return found


def _fault(file: str, name: str, why: str) -> UsageError:
    return UsageError(
        f"{file}: case {name}: {why.rstrip('; ')}",
        code="case_invalid",
        hint="memconform conform lint --schema",
    )
