"""Which documents a search is restricted to."""

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
    def has_lists(self) -> bool:
        """Whether anything besides prefixes restricts."""
        return any(wanted is not None for wanted in (self.paths, self.tags, self.session_ids))
