"""Counts with nouns, for messages."""

from collections.abc import Sequence


def plural(count: int, noun: str, *, spec: str = "") -> str:
    """Return a count with its noun, such as `1 query` or `2 queries`.

    Args:
        count: The number of things.
        noun: The singular of a regular noun; in a phrase, the noun comes last.
        spec: Format of the number, for example `,` for thousands separators.
    """
    return f"{count:{spec}} {noun if count == 1 else _plural_of(noun)}"


def listed(names: Sequence[str], *, most: int = 10) -> str:
    """The number of names and the first of them: `12 (a, b and 10 more)`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{len(names)} ({', '.join(names[:most])}{more})"


def _plural_of(noun: str) -> str:
    if noun.endswith(("s", "x", "ch", "sh")):
        return f"{noun}es"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}s"
