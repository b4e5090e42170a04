"""JSON in which nothing is ambiguous: no repeated key, no NaN, no number beyond a double.

`json.loads` keeps the last of two equal keys, so that a row with two answers is scored against
one of them in silence.
"""

import json
import math
import re
from typing import Any, Final, cast

from memconform.contract.wire import JsonValue

_MAX_KEY_SHOWN = 80
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]', re.DOTALL)


class RepeatedKeyError(ValueError):
    """An object has a key twice."""

    def __init__(self, key: str) -> None:
        shown = key if len(key) <= _MAX_KEY_SHOWN else f"{key[:_MAX_KEY_SHOWN]}..."
        super().__init__(f"the key {shown!r} occurs twice in one object")
        self.key = key


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object from its pairs; raises RepeatedKeyError."""
    built = dict(pairs)
    # Counting comes first: of LongMemEval S's 250,000 objects each passes here.
    if len(built) < len(pairs):
        known: set[str] = set()
        for key, _ in pairs:
            if key in known:
                raise RepeatedKeyError(key)
            known.add(key)
    return built


def require_unique_keys(text: str | bytes) -> None:
    """Raise RepeatedKeyError where an object of a JSON text has a key twice.

    What is no JSON passes: it is for the caller's parser to say what is wrong with it.
    """
    try:
        json.loads(text, object_pairs_hook=unique_keys)
    except RepeatedKeyError:
        raise
    except (ValueError, RecursionError):
        return


def reject_constant(name: str) -> None:
    """Raise ValueError for NaN and Infinity, which only Python's JSON has."""
    raise ValueError(f"{name} is not JSON")


def finite_float(number: str) -> float:
    """The value of a number; raises ValueError where a double cannot hold it (`1e999`)."""
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number[:40]} is too large a number")
    return value


DECODER: Final = json.JSONDecoder(
    object_pairs_hook=unique_keys, parse_constant=reject_constant, parse_float=finite_float
)


def decode(text: str) -> JsonValue:
    """The value that a JSON text is.

    Raises:
        json.JSONDecodeError: for a text that is not JSON.
        ValueError: for a repeated key, NaN, a number that is too large or has too many digits,
            and where values nest more deeply than Python's stack goes.
    """
    try:
        return cast("JsonValue", DECODER.decode(text))
    except RecursionError as error:
        raise ValueError("nests too deeply") from error


def repeated_key_position(text: str, key: str, start: int = 0) -> int:
    """Where in a JSON text an object has `key` for the second time; `start` if none has.

    Slow, for error messages only: the decoder does not say where it stands.
    """
    has_key: list[bool] = []
    last = start, ""
    for token in _TOKEN.finditer(text, start):
        match token[0]:
            case "{" | "[":
                has_key.append(False)
            case "}" | "]":
                has_key = has_key[:-1]
            case ":":
                position, written = last
                if json.loads(written, strict=False) == key:
                    if has_key[-1]:
                        return position
                    has_key[-1] = True
            case ",":
                pass
            case written:
                last = token.start(), written
    return start


def depth(value: JsonValue) -> int:
    """How many arrays and objects lie inside one another; 0 of a scalar."""
    levels = 0
    level = [value] if isinstance(value, dict | list) else []
    while level:
        levels += 1
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, dict | list)
        ]
    return levels
