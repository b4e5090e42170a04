"""`${name}` in cases: which stand where, and what they become."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from memconform.contract.wire import JsonValue

_REFERENCE = re.compile(r"\$\{([a-z][a-z0-9_]*(?:\.[A-Za-z0-9_]+)*)\}")


class UnknownVariableError(Exception):
    pass


def references(value: JsonValue) -> list[str]:
    """The names of the variables in all texts of `value`, keys included.

    Raises:
        UnknownVariableError: for a `${` that begins none.
    """
    found: list[str] = []
    _collect(value, found)
    return found


def _collect(value: JsonValue, found: list[str]) -> None:
    if isinstance(value, str):
        begun = value.count("${")
        if begun:
            names = _REFERENCE.findall(value)
            if len(names) != begun:
                raise UnknownVariableError(f"{value!r}: a variable is written ${{name}}")
            found += names
    elif isinstance(value, dict):
        for key, each in value.items():
            _collect(key, found)
            _collect(each, found)
    elif isinstance(value, list | tuple):
        for each in value:
            _collect(each, found)


def substitute(
    value: JsonValue, values: Mapping[str, JsonValue], *, partly: bool = False
) -> JsonValue:
    """`value` with its variables filled in; one that is the whole text keeps its type.

    `partly` leaves those that `values` does not hold.

    Raises:
        UnknownVariableError: for a variable that `values` does not hold.
    """

    def look_up(name: str) -> JsonValue:
        found: Any = values
        for part in name.split("."):
            if isinstance(found, list) and part.isdigit() and int(part) < len(found):
                found = found[int(part)]
            elif isinstance(found, Mapping) and part in found:
                found = found[part]
            else:
                raise UnknownVariableError(f"${{{name}}} is not known here")
        return found

    return _walk(value, look_up, partly=partly)


def _walk(value: JsonValue, look_up: Callable[[str], JsonValue], *, partly: bool) -> JsonValue:
    def known(match: re.Match[str]) -> JsonValue:
        try:
            return look_up(match[1])
        except UnknownVariableError:
            if partly:
                return match[0]
            raise

    def walk(each: JsonValue) -> JsonValue:
        if isinstance(each, str):
            whole = _REFERENCE.fullmatch(each)
            return known(whole) if whole else _REFERENCE.sub(lambda m: str(known(m)), each)
        if isinstance(each, dict):
            return {walk(key): walk(item) for key, item in each.items()}
        if isinstance(each, list | tuple):
            return [walk(item) for item in each]
        return each

    return walk(value)
