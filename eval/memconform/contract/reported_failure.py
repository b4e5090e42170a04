"""Finds out whether a message that should be a success says that it is a failure.

A daemon was seen to answer 200, without results and with `{"error": …}` beside them: that a search
failed would count as finding nothing.
"""

import json
import re
from collections.abc import Collection, Iterator
from functools import cache
from typing import Any

from pydantic import BaseModel

from memconform.contract.dialect_keys import MISSING, KeyReader, plain_key

FAILURES = ("error", "errors", "exception", "ok=false", "success=false", "timedOut=true")
"""What reports a failure: a key that holds a value, or that holds this one. A search that timed out
inside a 200 has not ranked everything, and is not repeatable (core.search.repeatable). `partial` is
none: events of a stream are partial by nature, and a dialect may add it."""

_STATUS_KEYS = frozenset({"status", "statuscode", "code"})
_ERROR_STATUSES = range(400, 600)
_FREE_FORM = frozenset({"metadata", "tuning", "filters"})
"""Objects whose keys are those of users."""
_SHOWN_CHARACTERS = 200

_SUSPECT = re.compile(
    rb'"[_-]?(?:errors?|exception|ok|success|timed[_-]?out|status[_-]?(?:code)?|code)"\s*:',
    re.IGNORECASE,
)


@cache
def plain_keys(model: type[BaseModel]) -> frozenset[str]:
    """The contract's keys of a message, for `own_keys`."""
    return frozenset(plain_key(f.alias or name) for name, f in model.model_fields.items())


def failure_in(content: bytes, model: type[BaseModel] | None) -> str | None:
    """What a message of the contract, as JSON of type `model`, says of its failure.

    None if it reports none, is not JSON, or nests too deeply.
    """
    # Most messages have none of the keys, and need not be parsed.
    if _SUSPECT.search(content) is None:
        return None
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return reported_failure(value, own_keys=plain_keys(model) if model else ())


def reported_failure(
    value: object, failures: Collection[str] = FAILURES, own_keys: Collection[str] = ()
) -> str | None:
    """What a message says of its failure, as JSON; None if it reports none.

    Args:
        value: The message, as parsed JSON. Its objects are searched, but not those in arrays.
        failures: Keys in any spelling, `key` or `key=value`, or places from the top, joined by
            `.`. An error status as a number counts as well, unless there are none.
        own_keys: Plain keys of the message that mean something else at its top.
    """
    if not isinstance(value, dict) or not failures:
        return None
    rules = [_rule(failure) for failure in failures]
    for place, expected in rules:
        if "." in place and _matches(KeyReader(value, "", "any").find([place]), expected):
            return _shown(KeyReader(value, "", "any").find([place]))
    simple = {plain_key(place): expected for place, expected in rules if "." not in place}
    for key, inner, is_top in _entries(value):
        if is_top and key in own_keys:
            continue
        if key in simple and _matches(inner, simple[key]):
            return _shown(inner if simple[key] is MISSING else {key: inner})
        if key in _STATUS_KEYS and _is_error_status(inner):
            return _shown({key: inner})
    return None


def _entries(value: dict[str, Any], *, is_top: bool = True) -> Iterator[tuple[str, Any, bool]]:
    for name, inner in value.items():
        key = plain_key(name)
        yield key, inner, is_top
        if isinstance(inner, dict) and key not in _FREE_FORM:
            yield from _entries(inner, is_top=False)


def _rule(failure: str) -> tuple[str, Any]:
    place, equals, text = failure.partition("=")
    if not equals:
        return place, MISSING
    try:
        return place, json.loads(text)
    except ValueError:
        return place, text


def _matches(found: object, expected: object) -> bool:
    if found is MISSING:
        return False
    if expected is MISSING:
        return found not in (None, False, "", [], {})
    return type(found) is type(expected) and found == expected


def _is_error_status(value: object) -> bool:
    return type(value) is int and value in _ERROR_STATUSES


def _shown(found: object) -> str:
    return json.dumps(found, ensure_ascii=False)[:_SHOWN_CHARACTERS]
