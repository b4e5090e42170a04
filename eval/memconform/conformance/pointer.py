"""JSON pointers (RFC 6901), and `*` for every item of an array. Pure."""

from memconform.contract.wire import JsonValue


class Missing:
    """Stands for what a pointer does not find."""

    def __repr__(self) -> str:
        return "(nothing there)"


MISSING = Missing()


def resolve(value: JsonValue, pointer: str) -> JsonValue:
    """What `pointer` names in `value`; MISSING where there is nothing.

    A `*` is every item of an array; of anything else it is a key.
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
    """A key as a pointer names it."""
    return key.replace("~", "~0").replace("/", "~1")
