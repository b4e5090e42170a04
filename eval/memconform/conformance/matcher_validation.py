"""Validates the matchers of a case when it is loaded. Pure."""

import re
from collections.abc import Callable
from typing import Any

from memconform.conformance.matchers import SCHEMAS, BadMatcherError, matcher_name
from memconform.conformance.mismatch import JSON_TYPES
from memconform.contract.wire import JsonValue


def _require(fits: bool, message: str) -> None:  # noqa: FBT001 - the condition itself
    if not fits:
        raise BadMatcherError(message)


def _is_reference(value: JsonValue) -> bool:
    return isinstance(value, str) and value.startswith("${")


def _check_regex(value: JsonValue) -> None:
    _require(isinstance(value, str), "$regex needs a text")
    try:
        re.compile(value)
    except re.error as error:
        raise BadMatcherError(f"$regex {value!r}: {error}") from error


def _check_bounds(value: JsonValue) -> None:
    _require(isinstance(value, list) and len(value) == 2, "$range and $items need [least, most]")
    _require(
        all(v is None or JSON_TYPES["number"](v) or _is_reference(v) for v in value)
        and any(v is not None for v in value),
        "$range and $items need numbers, or null for no bound",
    )


_LIST = "$in, $set, $multiset, $subset and $all need an array"
_VALIDATORS: dict[str | None, Callable[[Any], None]] = {
    "type": lambda v: _require(v in JSON_TYPES, f"$type needs one of {', '.join(JSON_TYPES)}"),
    "regex": _check_regex,
    "range": _check_bounds,
    "items": _check_bounds,
    "approx": lambda v: _require(
        isinstance(v, list) and len(v) == 2, "$approx needs [value, tolerance]"
    ),
    "digits": lambda v: _require(isinstance(v, int), "$digits needs a number"),
    "schema": lambda v: _require(v in SCHEMAS, f"$schema needs one of {', '.join(SCHEMAS)}"),
    "absent": lambda v: _require(isinstance(v, bool), "$absent needs true or false"),
    "rfc3339": lambda v: _require(isinstance(v, bool), "$rfc3339 needs true or false"),
    "ascending": lambda v: _require(isinstance(v, bool), "$ascending needs true or false"),
    "descending": lambda v: _require(isinstance(v, bool), "$descending needs true or false"),
    **dict.fromkeys(
        ("in", "set", "multiset", "subset", "all"),
        lambda v: _require(isinstance(v, list) or _is_reference(v), _LIST),
    ),
}


def check_matcher(expected: JsonValue) -> None:
    """Validate all matchers in `expected`.

    Raises:
        BadMatcherError: if one is unknown or malformed.
    """
    if isinstance(expected, dict):
        name = matcher_name(expected)
        if name in _VALIDATORS:
            _VALIDATORS[name](expected[f"${name}"])
        for value in expected.values():
            check_matcher(value)
    elif isinstance(expected, list):
        for value in expected:
            check_matcher(value)
