"""Values of rows that have the type they should, or say what they are instead."""

from collections.abc import Mapping
from typing import Any


def told(error: Exception) -> str:
    """What is wrong with a value that has not the shape it should."""
    return f"no {error}" if isinstance(error, KeyError) else str(error)


def text(row: Mapping[str, Any], key: str) -> str:
    """The text at a key; raises KeyError or TypeError for what is none."""
    value = row[key]
    if not isinstance(value, str):
        raise TypeError(f"{key!r} must be text, not {_shown(value)}")
    return value


def texts(row: Mapping[str, Any], key: str) -> list[str]:
    """The texts at a key; raises KeyError or TypeError for what is no list of them."""
    value = row[key]
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise TypeError(f"{key!r} must be a list of texts, not {_shown(value)}")
    return value


def answer_text(row: Mapping[str, Any], key: str) -> str:
    """The answer at a key, a text or a number; raises KeyError or TypeError for anything else."""
    value = row[key]
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TypeError(f"{key!r} must be text or a number, not {_shown(value)}")
    return str(value)


def _shown(value: object) -> str:
    return repr(value)[:60]
