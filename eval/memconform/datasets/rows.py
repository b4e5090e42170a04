"""Typed access to the values of untrusted rows."""

from collections.abc import Mapping
from typing import Any


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


def answer_text(row: Mapping[str, Any], key: str) -> str:
    """The answer at a key, text or a number, as text; raises KeyError or TypeError otherwise."""
    value = row[key]
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TypeError(f"{key!r} must be text or a number, not {_shown(value)}")
    return str(value)


def _shown(value: object) -> str:
    return repr(value)[:60]
