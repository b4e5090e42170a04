"""Which documents a search is restricted to."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Filters:
    """Restrictions on documents; None does not restrict, an empty list matches nothing."""

    prefixes: tuple[str, ...] = ()
    """The path must start with each of them."""
    paths: list[str] | None = None
    tags: list[str] | None = None
    session_ids: list[str] | None = None

    @property
    def restricts(self) -> bool:
        return bool(self.prefixes) or self.has_lists

    @property
    def has_lists(self) -> bool:
        """Whether anything besides prefixes restricts."""
        return any(wanted is not None for wanted in (self.paths, self.tags, self.session_ids))

    def paths_without_nul(self) -> list[str] | None:
        """The paths that a document may have: in SQLite's json_each, a text ends at a NUL."""
        return None if self.paths is None else [path for path in self.paths if "\0" not in path]


def escape_nul(text: str) -> str:
    """Encode a text without NUL, different texts differently: json_each ends a text at a NUL."""
    return text.replace("\x01", "\x01b").replace("\0", "\x01a")


def escape_all(values: Sequence[object] | None) -> list[object] | None:
    """Apply `escape_nul` to all texts of a list; in a sidecar, a tag may be no text."""
    if values is None:
        return None
    return [escape_nul(value) if isinstance(value, str) else value for value in values]
