"""Names the causes of values, headers and bodies that are not as expected. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

from pydantic import ValidationError

from memconform.conformance.causes import Fault, place_name
from memconform.conformance.mismatch import Mismatch, json_type
from memconform.conformance.pointer import MISSING
from memconform.contract.events import Change
from memconform.contract.problem import STATUS
from memconform.contract.wire import JsonValue, Mode
from memconform.validation_faults import validation_faults

_BODY = "the body"

_WORDS = frozenset(
    {*STATUS, *(mode.value for mode in Mode), *get_args(Change.model_fields["kind"].annotation)}
)
"""Texts that the contract defines: unlike ids and paths, they may be part of a cause."""

_ARTICLES = {"array": "an", "object": "an", "integer": "an"}


def _a(json_type_name: str) -> str:
    if json_type_name in ("null", "nothing"):
        return json_type_name
    return f"{_ARTICLES.get(json_type_name, 'a')} {json_type_name}"


def wrong_type(place: str, got: JsonValue, wanted: str) -> str:
    """Name the cause of a value of another JSON type than `wanted`."""
    if got is None:
        return f"{place} is null"
    if wanted == "integer" and json_type(got) == "number":
        return f"{place} is not a whole number"
    return f"{place} is {_a(json_type(got))}, expected {_a(wanted)}"


def mismatch_fault(
    mismatch: Mismatch, message: str, *, body: JsonValue = MISSING, at: str = "", root: str = _BODY
) -> Fault:
    """Name the cause of a mismatch.

    Args:
        mismatch: The mismatch; its pointer starts at the value that `at` selects.
        message: The fault in words.
        body: The value that `at` points into.
        at: The expectation's pointer, in which `*` stands for every item.
        root: Names the whole `body`, for faults of no key in particular.
    """
    parts = [*at.split("/")[1:], *_below(at, mismatch.where)]
    if mismatch.got is MISSING:
        gap = _gap(body, parts)
        if gap is not None:
            return Fault(message, *_gap_cause(*gap, root))
    collected = mismatch.kind in ("few", "many", "contents") and not mismatch.where
    if collected and "*" in parts:
        # It is the array behind `*` that has too few items, and not the values under it.
        parts = parts[: parts.index("*")]
    return Fault(message, *_value_cause(mismatch, place_name(parts) or root))


def event_fault(
    mismatch: Mismatch, message: str, *, events: list[JsonValue], at: str, name: str
) -> Fault:
    """Name the cause of a mismatch in the data of all events of a name, given as an array.

    Which of the events it is, is no part of the cause.
    """
    if not events:
        return Fault(message, f"no event {name}", is_effect=True)
    inside, where = at.split("/")[1:], mismatch.where.split("/")[1:]
    index = inside.pop(0) if inside else where.pop(0) if where else ""
    if index == "*" and "*" not in inside:
        index = where.pop(0) if where else ""
    if not index.isdigit() and index != "*":
        return mismatch_fault(mismatch, message, root=f"events {name}")
    if index.isdigit() and int(index) >= len(events):
        return Fault(message, f"too few events {name}", is_effect=True)
    inner = mismatch_fault(
        replace(mismatch, where=_pointer(where)),
        message,
        body=_first_without(events, inside) if index == "*" else events[int(index)],
        at=_pointer(inside),
        root="the data",
    )
    return replace(inner, cause=f"event {name}: {inner.cause}")


def _pointer(parts: Sequence[str]) -> str:
    return "".join(f"/{part}" for part in parts)


def _first_without(items: list[JsonValue], parts: Sequence[str]) -> JsonValue:
    """Return the first item in which a place is missing, or else the first one."""
    return next((item for item in items if _gap(item, parts) is not None), items[0])


def missing_fault(body: JsonValue, pointer: str) -> Fault:
    """Name the cause of a value that a later step needs, and that a response does not have."""
    gap = _gap(body, pointer.split("/")[1:]) or ([], "missing")
    return Fault(f"no value at {pointer}", *_gap_cause(*gap, _BODY))


def _below(at: str, where: str) -> list[str]:
    parts = where.split("/")[1:]
    # With `*`, the value is the array of what was found, whose index `at` stands for already.
    return parts[1:] if "*" in at.split("/") and parts and parts[0].isdigit() else parts


_GAPS = {
    "missing": ("missing key {}", False),
    "null": ("{} is null", False),
    "few": ("{} has too few items", True),
    "empty": ("{} is empty", True),
    "type": ("{} has no keys", False),
}


def _gap(value: JsonValue, parts: Sequence[str], done: int = 0) -> tuple[list[str], str] | None:
    """Find where the way to a missing value ends: the place, and what is wrong there."""
    for index, part in enumerate(parts[done:], start=done):
        here = list(parts[:index])
        if value is None:
            return here, "null"
        if isinstance(value, list) and part == "*":
            gaps = (_gap(item, parts, index + 1) for item in value)
            return next((gap for gap in gaps if gap is not None), None)
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            if key not in value:
                return [*here, part], "missing"
            value = value[key]
        elif isinstance(value, list) and key.isdigit():
            if int(key) >= len(value):
                return here, "few" if value else "empty"
            value = value[int(key)]
        else:
            return here, "missing" if value is MISSING else "type"
    return (list(parts), "missing") if value is MISSING else None


def _gap_cause(place: Sequence[str], kind: str, root: str) -> tuple[str, bool]:
    """Return the cause of a value that is missing, and whether it may be an effect."""
    text, is_effect = _GAPS[kind]
    if kind == "missing" and not place:
        return (f"{root} is not JSON" if root == _BODY else f"{root} is missing"), is_effect
    return text.format(place_name(place) or root), is_effect


_KINDS = {
    "unexpected": ("unexpected key {}", True),
    "few": ("{} has too few items", True),
    "many": ("{} has too many items", True),
    "contents": ("{} has other items", True),
    "range": ("{} is out of range", True),
    "format": ("{} has the wrong format", False),
    "value": ("wrong value at {}", True),
    "media": ("wrong value at {}", True),
}


def _value_cause(mismatch: Mismatch, place: str) -> tuple[str, bool]:
    """Return the cause of a mismatch at a place, and whether it may be an effect."""
    kind, got, wanted = mismatch.kind, mismatch.got, mismatch.wanted
    if got is MISSING:
        return f"missing key {place}", False
    if kind == "type" or (got is None and kind != "unexpected"):
        return wrong_type(place, got, str(wanted)), False
    if kind in ("few", "contents") and not got:
        return f"{place} is empty", True
    if kind == "value" and _is_word(got) and _is_word(wanted):
        return f"{place} is {_word(got)}, expected {_word(wanted)}", True
    text, is_effect = _KINDS[kind]
    return text.format(place), is_effect


def _is_word(value: JsonValue) -> bool:
    return isinstance(value, bool) or (isinstance(value, str) and value in _WORDS)


def _word(value: JsonValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


# Headers ------------------------------------------------------------------------------------


def header_fault(name: str, mismatch: Mismatch, message: str) -> Fault:
    """Name the cause of a header that is missing or has the wrong value."""
    if mismatch.kind == "media":
        return media_fault(message, mismatch.got, str(mismatch.wanted))
    if mismatch.got is MISSING:
        return Fault(message, f"no header {name.lower()}", any_route=True)
    if mismatch.kind == "unexpected":
        return Fault(message, f"unexpected header {name.lower()}", any_route=True)
    return Fault(message, f"wrong header {name.lower()}", any_route=True)


_MEDIA_TYPE = re.compile(r"[a-z]{1,20}/[a-z0-9.+-]{1,50}")


def media_fault(message: str, got: JsonValue, expected: str) -> Fault:
    """Name the cause of a response with another media type than expected."""
    essence = str(got).partition(";")[0].strip().lower()
    if got is MISSING or not essence:
        shown = "no Content-Type"
    elif _MEDIA_TYPE.fullmatch(essence):
        shown = f"Content-Type {essence}"
    else:
        shown = "an invalid Content-Type"
    return Fault(message, f"{shown}, expected {expected}", any_route=True)


# Bodies that do not validate ----------------------------------------------------------------

_WANTED = {
    "string_type": "string",
    "int_type": "integer",
    "int_from_float": "integer",
    "int_parsing": "integer",
    "float_type": "number",
    "float_parsing": "number",
    "bool_type": "boolean",
    "bool_parsing": "boolean",
    "list_type": "array",
    "dict_type": "object",
    "model_type": "object",
    "model_attributes_type": "object",
}
_RANGES = (
    "greater_than", "greater_than_equal", "less_than", "less_than_equal", "too_short", "too_long",
    "string_too_short", "string_too_long", "finite_number",
)  # fmt: skip


def body_faults(
    error: ValidationError, what: str, *, root: str = _BODY, any_route: bool = False
) -> list[Fault]:
    """Return the faults of a response body, one for each cause; `what` begins the messages."""
    faults: dict[str, Fault] = {}
    errors = error.errors(include_url=False)
    for line, fault in zip(validation_faults(error), errors, strict=True):
        cause = _shape_cause(fault, root)
        faults.setdefault(cause, Fault(f"{what}: {line}", cause, any_route=any_route))
    return list(faults.values())


_SHAPES = {
    "missing": "missing key {}",
    "json_invalid": "{} is not JSON",
    "string_pattern_mismatch": "{} has the wrong format",
    **dict.fromkeys(_RANGES, "{} is out of range"),
}


def _shape_cause(fault: Mapping[str, Any], root: str) -> str:
    kind, place = fault["type"], place_name(fault["loc"]) or root
    if kind not in ("missing", "json_invalid"):
        if fault["input"] is None:
            return f"{place} is null"
        if kind in _WANTED:
            return wrong_type(place, fault["input"], _WANTED[kind])
    return _SHAPES.get(kind, "wrong value at {}").format(place)


_NOT_JSON = "accepts a body that is not JSON"
_ACCEPTED = {
    "missing": "accepts a request without {}",
    "json_invalid": _NOT_JSON,
    "string_pattern_mismatch": "accepts {} in a wrong format",
    **dict.fromkeys(_WANTED, "accepts {} of a wrong type"),
    **dict.fromkeys(_RANGES, "accepts {} out of range"),
}


def accepted_cause(error: ValueError | RecursionError) -> str:
    """Return the cause of a request that was accepted although it violates the contract."""
    if not isinstance(error, ValidationError):
        return _NOT_JSON
    fault = error.errors(include_url=False)[0]
    kind, loc = fault["type"], fault["loc"]
    if kind == "extra_forbidden":
        # Whichever key it is: what is missing is the check for unknown keys.
        return f"accepts an unknown key in {place_name(loc[:-1]) or _BODY}"
    return _ACCEPTED.get(kind, "accepts an invalid {}").format(place_name(loc) or "a body")
