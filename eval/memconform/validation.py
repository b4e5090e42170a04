"""What pydantic finds wrong with a value, as lines that people read."""

from collections.abc import Callable, Iterable, Sequence

from pydantic import ValidationError

from memconform.errors import nearest

_MAX_KEY = 100
"""Characters of an unknown key that is compared with the known ones, which takes long."""


def validation_faults(
    error: ValidationError,
    *,
    place: Callable[[Sequence[str]], str] = ".".join,
    known: Callable[[Sequence[str]], Iterable[str]] | None = None,
) -> list[str]:
    """What a value gets wrong, a line each, as `chunks.0.score: …`.

    Args:
        error: of pydantic.
        place: writes the path to what is wrong, where it is not to be joined by dots.
        known: the keys that could have been meant by an unknown one, whose path it takes.
    """
    lines = []
    for fault in error.errors(include_url=False, include_context=False, include_input=False):
        path = [str(part)[:_MAX_KEY] for part in fault["loc"]]
        match fault["type"]:
            case "extra_forbidden":
                meant = nearest(path[-1], known(path)) if known is not None else ""
                why = f"unknown key; {meant}".rstrip("; ")
            case "missing":
                why = "missing"
            case _:
                why = fault["msg"].removeprefix("Value error, ")
        lines.append(f"{place(path)}: {why}" if path else why)
    return lines


def first_fault(error: ValidationError) -> str:
    """The first of them: the others often follow from it."""
    return validation_faults(error)[0]
