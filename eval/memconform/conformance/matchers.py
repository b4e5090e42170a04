"""The closed set of matchers, and the comparison of plain values. Pure.

Objects match on the listed keys only, arrays match exactly, numbers compare by value, and a boolean
is not a number. An object whose only key begins with `$` is a matcher.
"""

import itertools
import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from memconform.conformance.mismatch import (
    JSON_TYPES,
    Kind,
    Mismatch,
    abbreviate,
    differs,
    ill_typed,
    length_kind,
)
from memconform.conformance.pointer import MISSING, token
from memconform.contract.schemas import ROUTES
from memconform.contract.wire import JsonValue
from memconform.validation_faults import first_fault


class BadMatcherError(ValueError):
    """A matcher is unknown or malformed."""


def mismatches(expected: JsonValue, got: JsonValue, where: str = "") -> list[Mismatch]:
    """Compare `got` with `expected`, a plain value or a matcher.

    Args:
        expected: A JSON value in which any part may be a matcher.
        got: The actual value; MISSING if there is none.
        where: JSON pointer to `got`, for the report.

    Returns:
        The differences; empty if the value matches.

    Raises:
        BadMatcherError: for an unknown matcher, or one beside other keys.
    """
    if isinstance(expected, dict):
        name = matcher_name(expected)
        if name is not None:
            return _MATCHERS[name](expected[f"${name}"], got, where)
        return _open_object(expected, got, where)
    if isinstance(expected, list):
        return _exact_array(expected, got, where)
    return [] if _equal(expected, got) else [differs(where, abbreviate(expected), expected, got)]


def _open_object(expected: Mapping[str, JsonValue], got: JsonValue, where: str) -> list[Mismatch]:
    if not isinstance(got, dict):
        return [Mismatch(where, "an object", got, "type", "object")]
    return [
        fault
        for key, value in expected.items()
        for fault in mismatches(value, got.get(key, MISSING), f"{where}/{key}")
    ]


def _exact_array(expected: list[JsonValue], got: JsonValue, where: str) -> list[Mismatch]:
    if not isinstance(got, list):
        return [Mismatch(where, f"the array {abbreviate(expected)}", got, "type", "array")]
    if len(expected) != len(got):
        shown = f"the {len(expected)} items {abbreviate(expected)}"
        return [Mismatch(where, shown, got, length_kind(len(expected), got))]
    return [
        fault
        for index, (wanted, item) in enumerate(zip(expected, got, strict=True))
        for fault in mismatches(wanted, item, f"{where}/{index}")
    ]


def matcher_name(expected: Mapping[str, Any]) -> str | None:
    """Return the name of the matcher that an object is, without the `$`; None if it is none.

    Raises:
        BadMatcherError: for an unknown matcher, or one beside other keys.
    """
    names = [key[1:] for key in expected if key.startswith("$") and not key.startswith("${")]
    if not names:
        return None
    if len(expected) > 1:
        raise BadMatcherError(f"${names[0]} must be the only key, but there are {sorted(expected)}")
    if names[0] not in _MATCHERS:
        raise BadMatcherError(
            f"unknown matcher ${names[0]}; the matchers are {', '.join(MATCHERS)}"
        )
    return names[0]


def _equal(expected: JsonValue, got: JsonValue) -> bool:
    if isinstance(expected, bool) or isinstance(got, bool):
        return expected is got
    return bool(expected == got)


def _deep_equal(expected: JsonValue, got: JsonValue) -> bool:
    """Deep equality: objects must have the same keys, and a boolean is not a number."""
    if isinstance(expected, dict) and isinstance(got, dict):
        return expected.keys() == got.keys() and all(
            _deep_equal(v, got[k]) for k, v in expected.items()
        )
    if isinstance(expected, list) and isinstance(got, list):
        return len(expected) == len(got) and all(map(_deep_equal, expected, got))
    return _equal(expected, got)


def _equals(expected: JsonValue, got: JsonValue, where: str) -> list[Mismatch]:
    return (
        []
        if _deep_equal(expected, got)
        else [differs(where, f"exactly {abbreviate(expected)}", expected, got)]
    )


def _type(expected: str, got: JsonValue, where: str) -> list[Mismatch]:
    if JSON_TYPES[expected](got):
        return []
    return [Mismatch(where, f"type {expected}", got, "type", expected)]


def _regex(expected: str, got: JsonValue, where: str) -> list[Mismatch]:
    fits = isinstance(got, str) and re.search(expected, got) is not None
    if fits:
        return []
    return [ill_typed(where, f"a text matching /{expected}/", got, "string", "value")]


def _in(expected: list[JsonValue], got: JsonValue, where: str) -> list[Mismatch]:
    fits = any(not mismatches(option, got) for option in expected)
    return [] if fits else [Mismatch(where, f"one of {abbreviate(expected)}", got)]


def _range(expected: list[float | None], got: JsonValue, where: str) -> list[Mismatch]:
    least, most = expected
    fits = JSON_TYPES["number"](got) and (
        (least is None or got >= least) and (most is None or got <= most)
    )
    if fits:
        return []
    return [ill_typed(where, f"a number from {least} to {most}", got, "number", "range")]


def _approx(expected: list[float], got: JsonValue, where: str) -> list[Mismatch]:
    value, tolerance = expected
    fits = JSON_TYPES["number"](got) and abs(got - value) <= tolerance
    if fits:
        return []
    return [ill_typed(where, f"{value} ± {tolerance}", got, "number", "range")]


def _digits(expected: int, got: JsonValue, where: str) -> list[Mismatch]:
    scale = 10**expected
    fits = JSON_TYPES["number"](got) and math.floor(got * scale + 0.5) / scale == got
    if fits:
        return []
    return [ill_typed(where, f"a number rounded to {expected} digits", got, "number", "range")]


def _number(expected: str, got: JsonValue, where: str) -> list[Mismatch]:
    fits = JSON_TYPES["number"](got) and getattr(got, "exact", got) == Decimal(expected)
    if fits:
        return []
    return [ill_typed(where, f"exactly the number {expected}", got, "number", "value")]


def _descending(expected: bool, got: JsonValue, where: str) -> list[Mismatch]:  # noqa: FBT001 - as all matchers
    is_ranking = isinstance(got, list) and len(got) > 1 and all(map(JSON_TYPES["number"], got))
    holds = is_ranking and all(a >= b for a, b in itertools.pairwise(got))
    if is_ranking and expected == holds:
        return []
    order = "never increase" if expected else "increase somewhere"
    return [Mismatch(where, f"two or more numbers that {order}", got)]


def _ascending(expected: bool, got: JsonValue, where: str) -> list[Mismatch]:  # noqa: FBT001 - as all matchers
    if isinstance(got, list) and len(got) > 1:
        if all(isinstance(item, str) for item in got):
            keys: list[Any] = [item.encode("utf-8", "surrogatepass") for item in got]
        else:
            keys = got if all(map(JSON_TYPES["number"], got)) else []
        if keys and expected == all(a < b for a, b in itertools.pairwise(keys)):
            return []
    order = "always increase" if expected else "do not always increase"
    return [Mismatch(where, f"two or more texts or numbers that {order}", got)]


def _contains(expected: JsonValue, got: JsonValue, where: str) -> list[Mismatch]:
    if isinstance(got, str):
        fits = isinstance(expected, str) and expected in got
    else:
        fits = isinstance(got, list) and any(not mismatches(expected, item) for item in got)
    kind: Kind = "value" if isinstance(got, str) else "contents"
    return (
        [] if fits else [Mismatch(where, f"a value containing {abbreviate(expected)}", got, kind)]
    )


def _items(expected: list[int | None], got: JsonValue, where: str) -> list[Mismatch]:
    least, most = expected
    fits = isinstance(got, list | str) and (
        (least is None or len(got) >= least) and (most is None or len(got) <= most)
    )
    if fits:
        return []
    shown = f"{least} to {most} items"
    if not isinstance(got, list):
        return [ill_typed(where, shown, got, "string", "range")]
    return [Mismatch(where, shown, got, length_kind(least or 0, got))]


def _multiset(expected: list[JsonValue], got: JsonValue, where: str) -> list[Mismatch]:
    shown = f"{abbreviate(expected)} in any order"
    if not isinstance(got, list):
        return [Mismatch(where, shown, got, "type", "array")]
    if len(got) != len(expected):
        return [Mismatch(where, shown, got, length_kind(len(expected), got))]
    return _subset(expected, got, where)


def _set(expected: list[JsonValue], got: JsonValue, where: str) -> list[Mismatch]:
    shown = f"the set {abbreviate(expected)}"
    if not isinstance(got, list):
        return [Mismatch(where, shown, got, "type", "array")]
    has_extra = any(_in(expected, item, where) for item in got)
    missing = [item for item in expected if _contains(item, got, where)]
    return [Mismatch(where, shown, got, "contents")] if has_extra or missing else []


def _subset(expected: list[JsonValue], got: JsonValue, where: str) -> list[Mismatch]:
    remaining = list(got) if isinstance(got, list) else []
    for wanted in expected:
        index = next((n for n, item in enumerate(remaining) if not mismatches(wanted, item)), None)
        if index is None:
            shown = f"items that include {abbreviate(wanted)}"
            return [ill_typed(where, shown, got, "array", "contents")]
        del remaining[index]
    return []


def _prefix(expected: JsonValue, got: JsonValue, where: str) -> list[Mismatch]:
    if isinstance(expected, str):
        fits = isinstance(got, str) and got.startswith(expected)
    else:
        fits = isinstance(got, list) and _deep_equal(expected, got[: len(expected)])
    return [] if fits else [Mismatch(where, f"a value beginning with {abbreviate(expected)}", got)]


def _absent(expected: bool, got: JsonValue, where: str) -> list[Mismatch]:  # noqa: FBT001 - as all matchers
    if expected == (got is MISSING or got is None):
        return []
    return [Mismatch(where, "no value" if expected else "a value", got, "unexpected")]


def _media_type(expected: str, got: JsonValue, where: str) -> list[Mismatch]:
    essence = got.partition(";")[0].strip().lower() if isinstance(got, str) else got
    return (
        []
        if essence == expected
        else [Mismatch(where, f"media type {expected}", got, "media", expected)]
    )


_RFC3339 = re.compile(
    r"\d{4}-\d\d-\d\d[Tt]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)",
    re.ASCII,
)


def _rfc3339(expected: bool, got: JsonValue, where: str) -> list[Mismatch]:  # noqa: FBT001 - as all matchers
    if expected == is_rfc3339(got):
        return []
    return [ill_typed(where, "an RFC 3339 date-time", got, "string", "format")]


def is_rfc3339(got: JsonValue) -> bool:
    """Whether a value is an RFC 3339 date-time whose date exists."""
    if not isinstance(got, str) or not _RFC3339.fullmatch(got):
        return False
    try:
        datetime.fromisoformat(got[:10])
    except ValueError:
        return False
    return True


SCHEMAS: dict[str, type[BaseModel]] = {
    model.__name__: model
    for route in ROUTES
    for model in (route.request, route.answer)
    if model is not None
}


def _schema(expected: str, got: JsonValue, where: str) -> list[Mismatch]:
    try:
        TypeAdapter(SCHEMAS[expected]).validate_python(got)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = "".join(f"/{token(str(part))}" for part in first["loc"])
        value = MISSING if first["type"] == "missing" else first["input"]
        return [Mismatch(where + place, f"{expected} ({first_fault(error)})", value)]
    return []


def _each(expected: JsonValue, got: JsonValue, where: str) -> list[Mismatch]:
    if not isinstance(got, list) or not got:
        # Every statement holds for the items of an empty array: the case would pass vacuously.
        return [ill_typed(where, "a non-empty array", got, "array", "few")]
    return [f for n, item in enumerate(got) for f in mismatches(expected, item, f"{where}/{n}")]


def _any(expected: JsonValue, got: JsonValue, where: str) -> list[Mismatch]:
    fits = isinstance(got, list) and any(not mismatches(expected, item) for item in got)
    shown = f"an item matching {abbreviate(expected)}"
    return [] if fits else [ill_typed(where, shown, got, "array", "contents")]


def _all(expected: list[JsonValue], got: JsonValue, where: str) -> list[Mismatch]:
    return [fault for part in expected for fault in mismatches(part, got, where)]


def _not(expected: JsonValue, got: JsonValue, where: str) -> list[Mismatch]:
    holds = got is not MISSING and bool(mismatches(expected, got))
    return [] if holds else [Mismatch(where, f"a value other than {abbreviate(expected)}", got)]


_MATCHERS: dict[str, Callable[[Any, Any, str], list[Mismatch]]] = {
    "equals": _equals,
    "type": _type,
    "regex": _regex,
    "in": _in,
    "range": _range,
    "approx": _approx,
    "digits": _digits,
    "number": _number,
    "ascending": _ascending,
    "descending": _descending,
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
"""Names of all matchers, with the `$`."""
