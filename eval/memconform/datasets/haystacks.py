"""The normalized model of a retrieval benchmark: haystacks of items, and questions about them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from memconform.contract.wire import JsonValue
from memconform.datasets.model import Question

Level = Literal["turn", "session"]
"""What an item is: one turn of a conversation, or a session of turns."""


@dataclass(frozen=True, slots=True)
class Item:
    """What a search may find."""

    id: str
    """Unique in its haystack."""
    text: str
    group: str = ""
    """The conversation or session that it belongs to."""
    date: str | None = None
    """As the dataset writes it."""
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)
    source: str = ""
    """The item that it is another key of; finding it counts as finding that one."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """What a loader has left out, or could not resolve."""

    id: str
    """Of the question or the item."""
    why: str


@dataclass(frozen=True, slots=True)
class Haystack:
    """One corpus: what a brain is filled with, and the questions that are put to it."""

    id: str
    items: tuple[Item, ...]
    queries: tuple[Question, ...]
    dropped: tuple[Dropped, ...] = ()
