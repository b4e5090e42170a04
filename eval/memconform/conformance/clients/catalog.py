"""The client cases that ship, their variants and their checks."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from memconform.conformance.case_files import RawVariant, case_fault, raw_variants, require_rules
from memconform.conformance.clients.case import ClientCall, ClientCase
from memconform.validation_faults import validation_faults

CASES = Path(__file__).with_name("cases")
PREFIX = "client-"
"""With which the ids of client cases begin."""


@dataclass(frozen=True, slots=True)
class ClientVariant:
    """A client case with one combination of the values of its matrix."""

    id: str
    base: str
    case: ClientCase
    variables: dict[str, Any]
    file: str

    def slots(self) -> list[str]:
        """The slots of its checks, in order; those of a second call end with `-2`, and so on."""
        return [
            slot if number == 1 else f"{slot}-{number}"
            for number, call in enumerate(self.case.calls, 1)
            for slot in call_slots(call)
        ]

    def check_ids(self) -> list[str]:
        """The ids of its checks, with `alive`, which every case has."""
        return [f"{self.id}#{slot}" for slot in (*self.slots(), "alive")]


def call_slots(call: ClientCall) -> list[str]:
    """What is checked of a call."""
    slots = ["outcome"]
    if call.expected_outcome != "any":
        slots.append("events" if call.call == "ask" else "result")
    return [*slots, "requests"]


@cache
def client_catalog(folder: Path = CASES) -> tuple[ClientVariant, ...]:
    """Read all client cases, in the order of files and of their contents.

    Raises:
        UsageError: as `raw_variants`.
    """
    return tuple(map(_variant, raw_variants(folder)))


def _variant(raw: RawVariant) -> ClientVariant:
    try:
        case = ClientCase.model_validate(raw.content)
    except ValidationError as error:
        raise case_fault(raw.file, raw.id, "\n".join(validation_faults(error))) from error
    require_rules(raw.file, raw.id, case.rules)
    if not raw.base.startswith(PREFIX):
        raise case_fault(raw.file, raw.id, f"its id does not begin with {PREFIX!r}")
    return ClientVariant(raw.id, raw.base, case, raw.variables, raw.file)
