"""Decodes JSON bodies as robust.body and robust.depth require. Pure."""

import json
import re

from memconform.contract.wire import JsonValue
from memconform.oracle.predictions import Rejection, invalid

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_ACCEPTED, _REJECTED = 64, 1_000
"""Levels of nesting that a daemon must accept, and beyond which it must reject."""


def decode(body: bytes) -> tuple[JsonValue, list[Rejection], bool]:
    """Return the value, rejections, and whether a rejection is permitted but not required."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return None, [invalid("robust.body")], False
    depth = _depth(text)
    if depth > _REJECTED:
        return None, [invalid("robust.depth")], False
    try:
        value = json.loads(text, parse_constant=_reject)
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None, [invalid("robust.body")], False
    if not isinstance(value, dict):
        return None, [invalid("robust.body")], False
    return value, [], depth > _ACCEPTED


def _reject(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _depth(text: str) -> int:
    """The deepest nesting of brackets outside strings."""
    depth = deepest = 0
    for letter in _STRING.sub("", text):
        depth += (letter in "[{") - (letter in "]}")
        deepest = max(deepest, depth)
    return deepest
