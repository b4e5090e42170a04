"""Resolves JSON pointers (RFC 6901), extended by `*` for every item of an array. Pure."""

from memconform.contract.wire import JsonValue


class Missing:
    """The result of a pointer that matches nothing."""

    def __repr__(self) -> str:
        return "(missing)"


MISSING = Missing()


def resolve(value: JsonValue, pointer: str) -> JsonValue:
    """Return the value at `pointer`; MISSING if there is none.

    A `*` selects every item of an array; in anything else it is a plain key.
    """
    if not pointer:
        return value
    return _resolve(value, pointer.split("/")[1:])


def _resolve(value: JsonValue, parts: list[str]) -> JsonValue:
    if not parts:
        return value
    part, rest = parts[0], parts[1:]
    if part == "*" and isinstance(value, list):
        return [_resolve(item, rest) for item in value]
    key = part.replace("~1", "/").replace("~0", "~")
    if isinstance(value, dict) and key in value:
        return _resolve(value[key], rest)
    if isinstance(value, list) and key.isascii() and key.isdigit() and int(key) < len(value):
        return _resolve(value[int(key)], rest)
    return MISSING


def token(key: str) -> str:
    """Escape a key for use in a pointer."""
    return key.replace("~", "~0").replace("/", "~1")
