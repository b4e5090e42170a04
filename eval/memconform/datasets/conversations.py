"""The conversations of a benchmark as they were held, for readers that answer from them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Turn:
    """What one party said at once."""

    id: str
    """That of the item which contains only this turn."""
    speaker: str
    """A role or a name."""
    text: str
    by_user: bool
    """Whether the memory's user said it: always, where two people talk."""


@dataclass(frozen=True, slots=True)
class Session:
    """A sitting of a conversation."""

    id: str
    """That of the item which contains the whole session."""
    date: str
    """As the dataset writes it."""
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class Conversation:
    """The sessions of a haystack, in their order in the file."""

    id: str
    sessions: tuple[Session, ...]
