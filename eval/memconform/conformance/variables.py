"""Finds and substitutes the variables of cases, written `${name}`."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from memconform.contract.wire import JsonValue

_REFERENCE = re.compile(r"\$\{([a-z][a-z0-9_]*(?:\.[A-Za-z0-9_]+)*)\}")


class UnknownVariableError(Exception):
    """A variable is malformed, undefined or unused."""


class MissingPartError(UnknownVariableError):
    """A variable is defined, but its value, which a daemon sent, lacks the part referred to."""


def references(value: JsonValue) -> list[str]:
    """Return the names of the variables in all texts of `value`, including keys.

    Raises:
        UnknownVariableError: for a `${` that does not begin a well-formed variable.
    """
    names: list[str] = []
    _collect(value, names)
    return names


def _collect(value: JsonValue, names: list[str]) -> None:
    if isinstance(value, str):
        count = value.count("${")
        if count:
            matches = _REFERENCE.findall(value)
            if len(matches) != count:
                raise UnknownVariableError(f"{value!r}: a variable is written ${{name}}")
            names += matches
    elif isinstance(value, dict):
        for key, item in value.items():
            _collect(key, names)
            _collect(item, names)
    elif isinstance(value, list | tuple):
        for item in value:
            _collect(item, names)


def substitute(
    value: JsonValue, values: Mapping[str, JsonValue], *, partly: bool = False
) -> JsonValue:
    """Fill in the variables of `value`; a variable that is the whole text keeps its type.

    Args:
        value: A JSON value; keys may hold variables too.
        values: Values by name; `a.b.0` selects a part of the value of `a`.
        partly: Leave variables that are not in `values` unchanged.

    Raises:
        UnknownVariableError: if a variable is not in `values`, unless `partly`; MissingPartError
            if only a part of it is not.
    """

    def look_up(name: str) -> JsonValue:
        node: Any = values
        for part in name.split("."):
            if isinstance(node, list) and part.isdigit() and int(part) < len(node):
                node = node[int(part)]
            elif isinstance(node, Mapping) and part in node:
                node = node[part]
            else:
                if node is not values:
                    raise MissingPartError(f"${{{name}}} is missing in the response it refers to")
                raise UnknownVariableError(f"${{{name}}} is not defined here")
        return node

    return _walk(value, look_up, partly=partly)


def _walk(value: JsonValue, look_up: Callable[[str], JsonValue], *, partly: bool) -> JsonValue:
    def replacement(match: re.Match[str]) -> JsonValue:
        try:
            return look_up(match[1])
        except UnknownVariableError:
            if partly:
                return match[0]
            raise

    def walk(node: JsonValue) -> JsonValue:
        if isinstance(node, str):
            whole = _REFERENCE.fullmatch(node)
            if whole:
                return replacement(whole)
            return _REFERENCE.sub(lambda match: str(replacement(match)), node)
        if isinstance(node, dict):
            return {walk(key): walk(item) for key, item in node.items()}
        if isinstance(node, list | tuple):
            return [walk(item) for item in node]
        return node

    return walk(value)
