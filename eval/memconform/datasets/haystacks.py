"""The normalized model of a retrieval benchmark: haystacks of items, and queries about them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from memconform.contract.wire import JsonValue

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
class Query:
    """A question, and the items that answer it."""

    id: str
    """Unique in the dataset."""
    question: str
    category: str
    gold: tuple[str, ...]
    """Ids of items; one that no item has is a miss that cannot be avoided."""
    answers: tuple[str, ...] = ()
    question_date: str | None = None
    rubric: str | None = None
    """What a judge is told, where no single text is the answer."""
    abstain: bool = False
    """Whether the right answer is that the haystack holds none."""
    tags: tuple[str, ...] = ()


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
    queries: tuple[Query, ...]
    dropped: tuple[Dropped, ...] = ()
