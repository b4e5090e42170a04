"""Strict JSON decoding: rejects repeated keys, NaN, and numbers beyond the range of a double.

`json.loads` silently keeps the last of two equal keys, so a row with two answers would be scored
against only one of them.
"""

import json
import math
import re
from typing import Any, Final, cast

from memconform.contract.wire import JsonValue

_MAX_KEY_SHOWN = 80
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]', re.DOTALL)


class RepeatedKeyError(ValueError):
    """A JSON object has the same key twice."""

    def __init__(self, key: str) -> None:
        shown = key if len(key) <= _MAX_KEY_SHOWN else f"{key[:_MAX_KEY_SHOWN]}..."
        super().__init__(f"the key {shown!r} occurs twice in one object")
        self.key = key


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a JSON object from its pairs.

    Raises:
        RepeatedKeyError: if two pairs have the same key.
    """
    result = dict(pairs)
    # Counting first is cheap; each of LongMemEval S's 250,000 objects passes through here.
    if len(result) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise RepeatedKeyError(key)
            seen.add(key)
    return result


def require_unique_keys(text: str | bytes) -> None:
    """Check that no object of a JSON text repeats a key.

    Text that is not JSON passes: the caller's own parser reports what is wrong with it.

    Raises:
        RepeatedKeyError: if an object has the same key twice.
    """
    try:
        json.loads(text, object_pairs_hook=unique_keys)
    except RepeatedKeyError:
        raise
    except (ValueError, RecursionError):
        return


def reject_constant(name: str) -> None:
    """Raise ValueError for NaN and Infinity, which Python accepts but JSON does not define."""
    raise ValueError(f"{name} is not JSON")


def finite_float(number: str) -> float:
    """Parse a number.

    Raises:
        ValueError: if it is out of the range of a double (`1e999`).
    """
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number[:40]} is too large a number")
    return value


DECODER: Final = json.JSONDecoder(
    object_pairs_hook=unique_keys, parse_constant=reject_constant, parse_float=finite_float
)


def decode(text: str) -> JsonValue:
    """Decode a JSON text strictly.

    Raises:
        json.JSONDecodeError: if the text is not JSON.
        ValueError: for a repeated key, NaN, a number that is too large or has too many digits, and
            nesting deeper than Python's stack allows.
    """
    try:
        return cast("JsonValue", DECODER.decode(text))
    except RecursionError as error:
        raise ValueError("nests too deeply") from error


def repeated_key_position(text: str, key: str, start: int = 0) -> int:
    """Find where an object of a JSON text has `key` for the second time.

    Slow, so for error messages only: the decoder does not report its position.

    Returns:
        A character offset, or `start` if no object repeats the key.
    """
    has_key: list[bool] = []
    last_token = start, ""
    for token in _TOKEN.finditer(text, start):
        match token[0]:
            case "{" | "[":
                has_key.append(False)
            case "}" | "]":
                has_key = has_key[:-1]
            case ":":
                position, literal = last_token
                if json.loads(literal, strict=False) == key:
                    if has_key[-1]:
                        return position
                    has_key[-1] = True
            case ",":
                pass
            case literal:
                last_token = token.start(), literal
    return start


def depth(value: JsonValue) -> int:
    """Return how deeply arrays and objects nest; 0 for a scalar."""
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
