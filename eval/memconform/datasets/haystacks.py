"""The normalized model of a retrieval benchmark: haystacks of items, and questions about them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from memconform.contract.wire import JsonValue
from memconform.datasets.question import Question

Level = Literal["turn", "session"]
"""What an item is: one turn of a conversation, or a session of turns."""


_NO_METADATA: Mapping[str, JsonValue] = MappingProxyType({})
"""Shared by all items without metadata: a dict for each takes 6 MiB for those of WMB-100K."""


@dataclass(frozen=True, slots=True)
class Item:
    """A unit of retrieval."""

    id: str
    """Unique in its haystack."""
    text: str
    group: str = ""
    """The conversation or session that it belongs to."""
    date: str | None = None
    """As the dataset writes it."""
    metadata: Mapping[str, JsonValue] = field(default_factory=lambda: _NO_METADATA)
    source: str = ""
    """The id of the item that this one is a further key of; finding it counts as finding that."""
    speaker: str = ""
    """The role or the name of who said it; empty for several, and if the dataset does not say."""


@dataclass(frozen=True, slots=True)
class DroppedEntry:
    """A part of a benchmark that its loader skipped or could not resolve."""

    id: str
    """The id of the question or the item."""
    why: str


@dataclass(frozen=True, slots=True)
class Haystack:
    """A corpus of items with the questions about it; usually the content of one brain."""

    id: str
    items: tuple[Item, ...]
    queries: tuple[Question, ...]
    dropped: tuple[DroppedEntry, ...] = ()
    official_items: tuple[Item, ...] = ()
    """The items as the benchmark's released retrieval code indexes them, in which ids may repeat;
    empty if the benchmark has no such code."""
