"""Reads case files, expands their matrices, and validates cases against the contract's rules."""

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from memconform.conformance.case import BaseStep, Case, DiskStep, ProcessStep
from memconform.conformance.case_files import (
    RawVariant,
    case_fault,
    raw_variants,
    require_rules,
)
from memconform.conformance.names import CASES
from memconform.conformance.rules import rules
from memconform.conformance.variables import UnknownVariableError, references
from memconform.contract.names import (
    EMBEDDER_VARIABLE,
    LANGUAGE_MODELS,
    READER_VARIABLE,
    REMOTE_EMBEDDERS,
    Embedder,
    Mode,
    Reader,
)
from memconform.contract.wire import JsonValue, Profile
from memconform.errors import nearest
from memconform.validation_faults import validation_faults

BUILT_IN = frozenset(
    {"brain", "brain_url", "host", "address", "outside", "run_id", "state", "index", "other_brain"}
)
"""Variables that every case may refer to: see `CaseContext`."""


@dataclass(frozen=True, slots=True)
class CaseVariant:
    """A case with one combination of the values of its matrix."""

    id: str
    """`case`, or `case[label,label]`."""
    base: str
    """Id of the case, without the labels."""
    case: Case
    variables: dict[str, Any]
    """Values of the matrix variables."""
    file: str
    """Name of the case file."""

    @property
    def profile(self) -> Profile | None:
        """Profile of its first rule, by which cases are selected."""
        return rules()[self.case.rules[0]].profile

    @property
    def needed_profiles(self) -> list[Profile]:
        """Profiles of all its rules, those it names itself, and that of the files it accesses."""
        cited = [rules()[rule].profile for rule in self.case.rules]
        accessed = [Profile.SHARED_STATE] * any(map(_accesses_state, walk_steps(self.case)))
        profiles = (*cited, *self.case.profiles, *accessed)
        return [profile for profile in profiles if profile is not None]

    @property
    def needed_readers(self) -> frozenset[Reader]:
        """Readers of which the daemon must claim one; empty if the case needs none of them.

        With the scripted upstream, sdk.toml chooses the reader: one that is a language model.
        """
        named = self.case.daemon.env.get(READER_VARIABLE)
        if named in set(Reader):
            return frozenset({Reader(named)})
        scripted = self.case.daemon.upstream == "scripted" and not self.case.any_reader
        return LANGUAGE_MODELS if scripted and Profile.ASK in self.needed_profiles else frozenset()

    @property
    def needed_embedders(self) -> frozenset[Embedder]:
        """Embedders of which the daemon must claim one; empty if the case needs none of them.

        With the scripted upstream, sdk.toml chooses the embedder: one that is a service. Cases of
        hybrid-rerank use the upstream as a reranker, whatever embeds.
        """
        named = self.case.daemon.env.get(EMBEDDER_VARIABLE)
        if named in set(Embedder):
            return frozenset({Embedder(named)})
        scripted = self.case.daemon.upstream == "scripted"
        compares = bool(
            {Mode.SEMANTIC, Mode.HYBRID, Mode.CONVERSATION}.intersection(self.case.modes)
        )
        return REMOTE_EMBEDDERS if scripted and compares else frozenset()

    @property
    def is_disruptive(self) -> bool:
        """Whether it stops or starts daemons, so that no other case can run meanwhile."""
        return any(
            isinstance(step, ProcessStep) and step.process != "inspect"
            for step in walk_steps(self.case)
        )

    def slots(self) -> list[str]:
        """Return the slots of all its checks, in order."""
        return [slot for step in walk_steps(self.case) for slot in step.expect]


BRAIN_PREFIX = "mc-"
"""Prefix of the ids of all brains that cases create."""


def brain_id(entry: CaseVariant) -> str:
    """Return the id of a case's brain: unique to the case, and the same in each run.

    A command in a report can therefore be repeated.
    """
    plain = re.sub(r"[^A-Za-z0-9-]+", "-", entry.id).strip("-").lower()[:100]
    # Variants may differ only in characters that an id cannot contain.
    suffix = "" if plain == entry.id else f"-{zlib.crc32(entry.id.encode()):08x}"
    return f"{BRAIN_PREFIX}{plain}{suffix}"


def _accesses_state(step: BaseStep) -> bool:
    """Whether a step reads or changes files of the state folder, and not only those beside it."""
    return isinstance(step, DiskStep) and not step.path.startswith("../")


def walk_steps(case: Case) -> Iterator[BaseStep]:
    """Yield every step of a case, including nested ones."""

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
    """Read all cases of a folder, in the order of files and of their contents.

    Raises:
        UsageError: as `raw_variants`.
    """
    return tuple(map(_variant, raw_variants(folder)))


def _variant(raw: RawVariant) -> CaseVariant:
    try:
        case = Case.model_validate(raw.content)
        _check_variables(case)
    except ValidationError as error:
        raise case_fault(raw.file, raw.id, "\n".join(validation_faults(error))) from error
    except UnknownVariableError as error:
        raise case_fault(raw.file, raw.id, str(error)) from error
    require_rules(raw.file, raw.id, case.rules)
    entry = CaseVariant(raw.id, raw.base, case, raw.variables, raw.file)
    slots = entry.slots()
    if not slots:
        raise case_fault(raw.file, raw.id, "it has no expectations, so it cannot fail")
    duplicates = sorted({slot for slot in slots if slots.count(slot) > 1})
    if duplicates:
        raise case_fault(raw.file, raw.id, f"the slot {duplicates[0]!r} is used in two steps")
    return entry


def _check_variables(case: Case) -> None:
    """Check that variables are defined before they are used, and captures are used at all.

    Raises:
        UnknownVariableError: for an undefined reference or an unused capture.
    """
    defined, used = set(BUILT_IN), set[str]()
    _require_defined([case.documents, case.daemon.env], defined)
    for step in walk_steps(case):
        nested = {"until", "repeat", "parallel", "expect", "require", "only_if"}
        own = step.model_dump(by_alias=True, exclude=nested, exclude_unset=True)
        used |= _require_defined(own, defined)
        defined |= set(step.capture)
        expectations = [*step.expect.values(), *step.require, *step.only_if]
        expected = [e.model_dump(by_alias=True, exclude_unset=True) for e in expectations]
        used |= _require_defined(expected, defined)
    for name in sorted(defined - BUILT_IN - used):
        raise UnknownVariableError(f"{name} is captured but never used")


def _require_defined(value: JsonValue, defined: set[str]) -> set[str]:
    """Return the variables that `value` refers to.

    Raises:
        UnknownVariableError: if one of them is not in `defined`.
    """
    variables = set()
    for name in references(value):
        variable = name.partition(".")[0]
        if variable not in defined:
            raise UnknownVariableError(f"${{{name}}} is not defined here; {nearest(name, defined)}")
        variables.add(variable)
    return variables
