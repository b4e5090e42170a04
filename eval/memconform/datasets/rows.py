"""Typed access to the values of untrusted rows."""

from collections.abc import Iterable, Mapping
from typing import Any

from memconform.contract.strict_json import decode


def reason_of(error: Exception) -> str:
    """The reason for which a row is invalid, in words."""
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)


def text(row: Mapping[str, Any], key: str) -> str:
    """The text at a key; raises KeyError if it is missing and TypeError if it is not text."""
    value = row[key]
    if not isinstance(value, str):
        raise TypeError(f"{key!r} must be text, not {_shown(value)}")
    return value


def texts(row: Mapping[str, Any], key: str) -> list[str]:
    """The list of texts at a key; raises KeyError or TypeError as `text` does."""
    value = row[key]
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise TypeError(f"{key!r} must be a list of texts, not {_shown(value)}")
    return value


def unpacked(row: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """The row with JSON in the place of texts that are JSON, as hubs export nested columns.

    Raises:
        ValueError: naming the key of a text that is not JSON.
    """
    values = dict(row)
    for key in keys:
        value = values.get(key)
        if isinstance(value, str) and value.lstrip().startswith(("[", "{")):
            try:
                values[key] = decode(value)
            except (ValueError, RecursionError) as error:
                raise ValueError(f"{key!r} is text, and not JSON: {error}") from error
    return values


def objects(row: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """The list of objects at a key; raises KeyError or TypeError as `text` does."""
    value = row[key]
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise TypeError(f"{key!r} must be a list of objects, not {_shown(value)}")
    return value


def answer_text(row: Mapping[str, Any], key: str) -> str:
    """The answer at a key, text or a number, as text; raises KeyError or TypeError otherwise."""
    value = row[key]
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TypeError(f"{key!r} must be text or a number, not {_shown(value)}")
    return str(value)


def _shown(value: object) -> str:
    return repr(value)[:60]
