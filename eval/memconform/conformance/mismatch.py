"""A difference between an expected and an actual JSON value, and what kind of difference it is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from memconform.conformance.pointer import MISSING
from memconform.contract.wire import JsonValue

Kind = Literal["value", "type", "few", "many", "contents", "unexpected", "range", "format", "media"]
"""What is wrong with a value: another value, another JSON type, too few or too many items, other
items, a value where none may be, a number out of range, a malformed text, another media type."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A difference between an expected and an actual value, with a JSON pointer to it."""

    where: str
    expected: str
    got: Any
    kind: Kind = "value"
    wanted: Any = MISSING
    """The expected value if it is a plain one; for `type`, the name of the expected type."""

    def __str__(self) -> str:
        at = f"{self.where}: " if self.where else ""
        return f"{at}expected {self.expected}, got {abbreviate(self.got)}"


_MAX_SHOWN = 200


def abbreviate(value: JsonValue) -> str:
    """Format a value for a report, truncated if it is long."""
    text = repr(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}… ({len(text)} characters)"


JSON_TYPES: dict[str, Callable[[Any], bool]] = {
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "integer": lambda v: isinstance(v, int | float) and not isinstance(v, bool) and v == v // 1,
    "number": lambda v: isinstance(v, int | float) and not isinstance(v, bool),
    "array": lambda v: isinstance(v, list),
    "object": lambda v: isinstance(v, dict),
    "null": lambda v: v is None,
}


def json_type(value: JsonValue) -> str:
    """Return the name of a value's JSON type; numbers are `number`, whole or not."""
    for name in ("string", "boolean", "number", "array", "object", "null"):
        if JSON_TYPES[name](value):
            return name
    return "nothing"


def differs(where: str, shown: str, expected: JsonValue, got: JsonValue) -> Mismatch:
    """Report that `got` is not the plain value `expected`."""
    if json_type(expected) != json_type(got):
        return Mismatch(where, shown, got, "type", json_type(expected))
    if isinstance(expected, list) and len(expected) != len(got):
        return Mismatch(where, shown, got, length_kind(len(expected), got))
    return Mismatch(where, shown, got, wanted=expected)


def length_kind(least: float, got: JsonValue) -> Kind:
    """Whether a value has too few items, or else too many."""
    return "few" if len(got) < least else "many"


def ill_typed(where: str, shown: str, got: JsonValue, wanted: str, kind: Kind) -> Mismatch:
    """Report a value that is not of the type `wanted`, or else is wrong in the way of `kind`."""
    if JSON_TYPES[wanted](got):
        return Mismatch(where, shown, got, kind)
    return Mismatch(where, shown, got, "type", wanted)
