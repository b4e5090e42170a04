"""The closed set of matchers, and how a plain value is compared. Pure.

A plain value is compared as it stands: objects are open (keys that are not named do not matter),
arrays exact, numbers by value, and a boolean is no number. An object with one key that begins with
`$` is a matcher.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from memconform.conformance.pointer import MISSING
from memconform.contract.schemas import ROUTES
from memconform.contract.wire import JsonValue
from memconform.validation import first_fault


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Where a value is not what it should be: a JSON pointer, what was expected, what is there."""

    where: str
    expected: str
    got: Any

    def __str__(self) -> str:
        at = f"{self.where}: " if self.where else ""
        return f"{at}expected {self.expected}, got {shown(self.got)}"


class BadMatcherError(ValueError):
    """A case that asks for a comparison which there is not."""


_SHOWN = 200


def shown(value: JsonValue) -> str:
    """A value as a report shows it, cut where it is long."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"


def mismatches(expected: JsonValue, got: JsonValue, where: str = "") -> list[Mismatch]:
    """What of `got` is not as `expected` has it; empty where all is."""
    if isinstance(expected, dict):
        name = _matcher_name(expected)
        if name is not None:
            return _MATCHERS[name](expected[f"${name}"], got, where)
        return _open_object(expected, got, where)
    if isinstance(expected, list):
        return _exact_array(expected, got, where)
    return [] if _same(expected, got) else [Mismatch(where, shown(expected), got)]


def _open_object(expected: Mapping[str, JsonValue], got: JsonValue, where: str) -> list[Mismatch]:
    if not isinstance(got, dict):
        return [Mismatch(where, "an object", got)]
    return [
        fault
        for key, value in expected.items()
        for fault in mismatches(value, got.get(key, MISSING), f"{where}/{key}")
    ]


def _exact_array(expected: list[JsonValue], got: JsonValue, where: str) -> list[Mismatch]:
    if not isinstance(got, list):
        return [Mismatch(where, f"the array {shown(expected)}", got)]
    if len(expected) != len(got):
        return [Mismatch(where, f"the {len(expected)} items {shown(expected)}", got)]
    return [
        fault
        for index, (wanted, item) in enumerate(zip(expected, got, strict=True))
        for fault in mismatches(wanted, item, f"{where}/{index}")
    ]


def check_matcher(expected: JsonValue) -> None:
    """Raises BadMatcherError for a matcher that is not in the set, or is written wrongly."""
    if isinstance(expected, dict):
        name = _matcher_name(expected)
        if name in _CHECKED:
            _CHECKED[name](expected[f"${name}"])
        for value in expected.values():
            check_matcher(value)
    elif isinstance(expected, list):
        for value in expected:
            check_matcher(value)


def _matcher_name(expected: Mapping[str, Any]) -> str | None:
    named = [key[1:] for key in expected if key.startswith("$") and not key.startswith("${")]
    if not named:
        return None
    if len(expected) > 1:
        raise BadMatcherError(f"${named[0]} stands beside other keys: {sorted(expected)}")
    if named[0] not in _MATCHERS:
        raise BadMatcherError(f"no matcher ${named[0]}; there are {', '.join(MATCHERS)}")
    return named[0]


def _same(expected: JsonValue, got: JsonValue) -> bool:
    if isinstance(expected, bool) or isinstance(got, bool):
        return expected is got
    return bool(expected == got)


def _exactly(expected: JsonValue, got: JsonValue) -> bool:
    """Equality without a boolean being a number, at any depth; objects closed."""
    if isinstance(expected, dict) and isinstance(got, dict):
        return expected.keys() == got.keys() and all(
            _exactly(v, got[k]) for k, v in expected.items()
        )
    if isinstance(expected, list) and isinstance(got, list):
        return len(expected) == len(got) and all(map(_exactly, expected, got))
    return _same(expected, got)


def _equals(expected: JsonValue, got: JsonValue, where: str) -> list[Mismatch]:
    return [] if _exactly(expected, got) else [Mismatch(where, f"exactly {shown(expected)}", got)]


_TYPES: dict[str, Callable[[Any], bool]] = {
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "integer": lambda v: isinstance(v, int | float) and not isinstance(v, bool) and v == v // 1,
    "number": lambda v: isinstance(v, int | float) and not isinstance(v, bool),
    "array": lambda v: isinstance(v, list),
    "object": lambda v: isinstance(v, dict),
    "null": lambda v: v is None,
}


def _type(expected: str, got: JsonValue, where: str) -> list[Mismatch]:
    return [] if _TYPES[expected](got) else [Mismatch(where, f"type {expected}", got)]


def _regex(expected: str, got: JsonValue, where: str) -> list[Mismatch]:
    fits = isinstance(got, str) and re.search(expected, got) is not None
    return [] if fits else [Mismatch(where, f"a text with /{expected}/", got)]


def _in(expected: list[JsonValue], got: JsonValue, where: str) -> list[Mismatch]:
    fits = any(not mismatches(each, got) for each in expected)
    return [] if fits else [Mismatch(where, f"one of {shown(expected)}", got)]


def _range(expected: list[float | None], got: JsonValue, where: str) -> list[Mismatch]:
    least, most = expected
    fits = _TYPES["number"](got) and (
        (least is None or got >= least) and (most is None or got <= most)
    )
    return [] if fits else [Mismatch(where, f"a number from {least} to {most}", got)]


def _approx(expected: list[float], got: JsonValue, where: str) -> list[Mismatch]:
    value, tolerance = expected
    fits = _TYPES["number"](got) and abs(got - value) <= tolerance
    return [] if fits else [Mismatch(where, f"{value} ± {tolerance}", got)]


def _digits(expected: int, got: JsonValue, where: str) -> list[Mismatch]:
    scale = 10**expected
    fits = _TYPES["number"](got) and math.floor(got * scale + 0.5) / scale == got
    return [] if fits else [Mismatch(where, f"a number rounded to {expected} digits", got)]


def _contains(expected: JsonValue, got: JsonValue, where: str) -> list[Mismatch]:
    if isinstance(got, str):
        fits = isinstance(expected, str) and expected in got
    else:
        fits = isinstance(got, list) and any(not mismatches(expected, item) for item in got)
    return [] if fits else [Mismatch(where, f"something with {shown(expected)} in it", got)]


def _items(expected: list[int | None], got: JsonValue, where: str) -> list[Mismatch]:
    least, most = expected
    fits = isinstance(got, list | str) and (
        (least is None or len(got) >= least) and (most is None or len(got) <= most)
    )
    return [] if fits else [Mismatch(where, f"{least} to {most} items", got)]


def _multiset(expected: list[JsonValue], got: JsonValue, where: str) -> list[Mismatch]:
    if not isinstance(got, list) or len(got) != len(expected):
        return [Mismatch(where, f"in any order {shown(expected)}", got)]
    return _subset(expected, got, where)


def _set(expected: list[JsonValue], got: JsonValue, where: str) -> list[Mismatch]:
    strange = isinstance(got, list) and any(_in(expected, item, where) for item in got)
    if not isinstance(got, list) or strange:
        return [Mismatch(where, f"as a set {shown(expected)}", got)]
    lacks = [each for each in expected if _contains(each, got, where)]
    return [Mismatch(where, f"as a set {shown(expected)}", got)] if lacks else []


def _subset(expected: list[JsonValue], got: JsonValue, where: str) -> list[Mismatch]:
    left = list(got) if isinstance(got, list) else []
    for each in expected:
        found = next((n for n, item in enumerate(left) if not mismatches(each, item)), None)
        if found is None:
            return [Mismatch(where, f"items with {shown(each)} among them", got)]
        del left[found]
    return []


def _prefix(expected: JsonValue, got: JsonValue, where: str) -> list[Mismatch]:
    if isinstance(expected, str):
        fits = isinstance(got, str) and got.startswith(expected)
    else:
        fits = isinstance(got, list) and _exactly(expected, got[: len(expected)])
    return [] if fits else [Mismatch(where, f"what begins with {shown(expected)}", got)]


def _absent(expected: bool, got: JsonValue, where: str) -> list[Mismatch]:  # noqa: FBT001 - as all matchers
    if expected == (got is MISSING or got is None):
        return []
    return [Mismatch(where, "nothing" if expected else "something", got)]


def _media_type(expected: str, got: JsonValue, where: str) -> list[Mismatch]:
    essence = got.partition(";")[0].strip().lower() if isinstance(got, str) else got
    return [] if essence == expected else [Mismatch(where, f"media type {expected}", got)]


_RFC3339 = re.compile(
    r"\d{4}-\d\d-\d\d[Tt]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)",
    re.ASCII,
)


def _rfc3339(expected: bool, got: JsonValue, where: str) -> list[Mismatch]:  # noqa: FBT001 - as all matchers
    return [] if expected == is_rfc3339(got) else [Mismatch(where, "an RFC 3339 date-time", got)]


def is_rfc3339(got: JsonValue) -> bool:
    if not isinstance(got, str) or not _RFC3339.fullmatch(got):
        return False
    try:
        datetime.fromisoformat(got[:10])
    except ValueError:
        return False
    return True


_SCHEMAS: dict[str, type[BaseModel]] = {
    model.__name__: model
    for route in ROUTES
    for model in (route.request, route.answer)
    if model is not None
}


def _schema(expected: str, got: JsonValue, where: str) -> list[Mismatch]:
    try:
        TypeAdapter(_SCHEMAS[expected]).validate_python(got)
    except ValidationError as error:
        return [Mismatch(where, f"{expected} ({first_fault(error)})", got)]
    return []


def _each(expected: JsonValue, got: JsonValue, where: str) -> list[Mismatch]:
    if not isinstance(got, list) or not got:
        # Of nothing, everything is true: a case would pass that has seen nothing.
        return [Mismatch(where, "an array with items", got)]
    return [f for n, item in enumerate(got) for f in mismatches(expected, item, f"{where}/{n}")]


def _any(expected: JsonValue, got: JsonValue, where: str) -> list[Mismatch]:
    fits = isinstance(got, list) and any(not mismatches(expected, item) for item in got)
    return [] if fits else [Mismatch(where, f"an item that is {shown(expected)}", got)]


def _all(expected: list[JsonValue], got: JsonValue, where: str) -> list[Mismatch]:
    return [fault for each in expected for fault in mismatches(each, got, where)]


def _not(expected: JsonValue, got: JsonValue, where: str) -> list[Mismatch]:
    holds = got is not MISSING and bool(mismatches(expected, got))
    return [] if holds else [Mismatch(where, f"something, and not {shown(expected)}", got)]


_MATCHERS: dict[str, Callable[[Any, Any, str], list[Mismatch]]] = {
    "equals": _equals,
    "type": _type,
    "regex": _regex,
    "in": _in,
    "range": _range,
    "approx": _approx,
    "digits": _digits,
    "contains": _contains,
    "items": _items,
    "set": _set,
    "multiset": _multiset,
    "prefix": _prefix,
    "subset": _subset,
    "absent": _absent,
    "media_type": _media_type,
    "rfc3339": _rfc3339,
    "schema": _schema,
    "each": _each,
    "any": _any,
    "all": _all,
    "not": _not,
}

MATCHERS = tuple(f"${name}" for name in _MATCHERS)


def _needs(fits: bool, what: str) -> None:  # noqa: FBT001 - the condition itself
    if not fits:
        raise BadMatcherError(what)


def _is_reference(value: JsonValue) -> bool:
    return isinstance(value, str) and value.startswith("${")


def _check_regex(value: JsonValue) -> None:
    _needs(isinstance(value, str), "$regex needs a text")
    try:
        re.compile(value)
    except re.error as error:
        raise BadMatcherError(f"$regex {value!r}: {error}") from error


def _check_bounds(value: JsonValue) -> None:
    _needs(isinstance(value, list) and len(value) == 2, "$range and $items want [least, most]")
    _needs(
        all(v is None or _TYPES["number"](v) or _is_reference(v) for v in value)
        and any(v is not None for v in value),
        "$range and $items want numbers, and null for no bound",
    )


_LIST = "$in, $set, $multiset, $subset and $all want an array"
_CHECKED: dict[str | None, Callable[[Any], None]] = {
    "type": lambda v: _needs(v in _TYPES, f"$type needs one of {', '.join(_TYPES)}"),
    "regex": _check_regex,
    "range": _check_bounds,
    "items": _check_bounds,
    "approx": lambda v: _needs(
        isinstance(v, list) and len(v) == 2, "$approx needs [value, tolerance]"
    ),
    "digits": lambda v: _needs(isinstance(v, int), "$digits needs a number"),
    "schema": lambda v: _needs(v in _SCHEMAS, f"$schema needs one of {', '.join(_SCHEMAS)}"),
    "absent": lambda v: _needs(isinstance(v, bool), "$absent needs true or false"),
    "rfc3339": lambda v: _needs(isinstance(v, bool), "$rfc3339 needs true or false"),
    **dict.fromkeys(
        ("in", "set", "multiset", "subset", "all"),
        lambda v: _needs(isinstance(v, list) or _is_reference(v), _LIST),
    ),
}
