"""Finds the values of a message by the keys of a dialect."""

import re
from collections.abc import Mapping
from typing import Any

from pydantic.alias_generators import to_pascal, to_snake

MISSING = object()


class DialectError(ValueError):
    """A message cannot be translated: `code` is `bad_body`, or `not_in_dialect` for a request.

    `place` is the missing or ambiguous key, with `*` for an index.
    """

    def __init__(self, code: str, message: str, place: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.place = re.sub(r"\[\d+\]", ".*", place)


class KeyReader:
    """Finds values of one JSON object by the daemon's keys."""

    def __init__(self, value: dict[str, Any], where: str, style: str) -> None:
        self._value = value
        self._where = where
        self._style = style

    def find(self, names: list[str]) -> Any:  # noqa: ANN401 - JSON
        """Return the value at the first of several places; MISSING if there is none."""
        for name in names:
            value: Any = self._value
            for key in name.rstrip("?").split("."):
                value = self._get(value, key) if isinstance(value, dict) else MISSING
                if value is MISSING:
                    break
            else:
                return value
        return MISSING

    def _get(self, value: dict[str, Any], key: str) -> Any:  # noqa: ANN401 - JSON
        if key in value or self._style != "any":
            return value.get(key, MISSING)
        matches = [other for other in value if plain_key(other) == plain_key(key)]
        if len(matches) > 1:
            raise DialectError(
                "bad_body",
                f"{self._where or 'the body'}: {' and '.join(matches)} both spell {key}",
            )
        return value[matches[0]] if matches else MISSING


def plain_key(key: str) -> str:
    """A key without case and underscores, by which style `any` compares."""
    return key.replace("_", "").replace("-", "").lower()


def styled(key: str, style: str) -> str:
    """A key of the contract in a style: camel, snake or pascal; `any` leaves it."""
    if style == "snake":
        return to_snake(key)
    return to_pascal(to_snake(key)) if style == "pascal" else key


def merged_tables(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Merge tables of a dialect: a table into a table, any other value in place of the old one."""
    merged = dict(base)
    for key, value in changes.items():
        inner = merged.get(key)
        if isinstance(inner, Mapping) and isinstance(value, Mapping):
            merged[key] = merged_tables(inner, value)
        else:
            merged[key] = value
    return merged
