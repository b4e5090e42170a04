"""Validation errors of pydantic, formatted for people."""

import re
from collections.abc import Callable, Iterable, Sequence

from pydantic import ValidationError

from memconform.errors import nearest

_MAX_KEY = 100
"""Characters of an unknown key that are compared with the known keys; long keys take long."""


def validation_faults(
    error: ValidationError,
    *,
    place: Callable[[Sequence[str]], str] = ".".join,
    known: Callable[[Sequence[str]], Iterable[str]] | None = None,
    quoted: bool = False,
) -> list[str]:
    """List the faults of a value, one line each, such as `chunks.0.score: …`.

    Args:
        error: The validation error.
        place: Formats the path to a fault; by default its parts are joined by dots.
        known: Returns the known keys beside an unknown key, given its path.
        quoted: Whether a value that is none of an enumeration is quoted.
    """
    lines = []
    for fault in error.errors(include_url=False, include_input=quoted):
        path = [str(part)[:_MAX_KEY] for part in fault["loc"]]
        match fault["type"]:
            case "extra_forbidden":
                suggestion = nearest(path[-1], known(path)) if known is not None else ""
                reason = f"unknown key; {suggestion}".rstrip("; ")
            case "missing":
                reason = "missing"
            case "enum" | "literal_error" if quoted:
                value = repr(fault["input"])[:_MAX_KEY]
                reason = f"{value} is not {fault['ctx']['expected']}"
            case _:
                reason = fault["msg"].removeprefix("Value error, ")
        lines.append(f"{place(path)}: {reason}" if path else reason)
    return lines


def first_fault(error: ValidationError) -> str:
    """Return the first fault only, because the others often follow from it."""
    return validation_faults(error)[0]


_PLACEHOLDER = re.compile(r"(?<!\$)\{[A-Za-z_]+\}")
"""A word in braces, but not a variable of a shell, as in `${name}`."""


def require_placeholders(text: str, names: Sequence[str], *, only_misspelt: bool = False) -> None:
    """Raise ValueError for a placeholder of `text` that is none of `names`.

    With `only_misspelt`, other words in braces are taken for the text's own.
    """
    known = [f"{{{name}}}" for name in names]
    for placeholder in _PLACEHOLDER.findall(text):
        suggestion = nearest(placeholder, known).replace("'", "")
        if placeholder in known or (only_misspelt and not suggestion):
            continue
        choice = suggestion or f"known are {' '.join(known)}"
        raise ValueError(f"unknown placeholder {placeholder}; {choice}")
