"""Searches for items through an adapter: a hit is an item's by its id or its exact text."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memconform.adapters.session import AdapterSession

_MOST_ASKED = 16
"""How many times more hits than items are asked for, of a system that stores items in pieces."""

Hit = Sequence[Any]
"""Id or None, text, score or None."""


class StoredTexts:
    """The texts that were stored for one user, by the ids of their items."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self._by_text = defaultdict[str, list[str]](list)

    def add(self, texts: Mapping[str, str]) -> None:
        """Add items that were not there before."""
        self.texts.update(texts)
        for identifier, text in texts.items():
            self._by_text[text].append(identifier)

    def item_of(
        self, identifier: str | None, text: str, taken: Collection[str | None]
    ) -> str | None:
        """The item that a hit is; None for a text of the system's own.

        A text that lost its id is matched exactly, to the first item that has it and is not
        `taken`.
        """
        if identifier is not None:
            return identifier
        candidates = self._by_text.get(text, ())
        return next((item for item in candidates if item not in taken), None)


@dataclass(frozen=True, slots=True)
class ItemHits:
    """What came of one search."""

    hits: Sequence[Hit]
    items: Sequence[str | None]
    """The item of each hit."""
    firsts: Sequence[int]
    """The hits that are the first of their item or of none, best first."""
    took_ms: float
    """Of the last call of the adapter."""


async def search_items(
    session: AdapterSession,
    user: str,
    query: str,
    k: int,
    *,
    stored: int,
    items_of: Callable[[Sequence[Hit]], Sequence[str | None]],
    whole: bool = True,
) -> ItemHits:
    """Search for `k` items; a system may return an item in pieces, and is asked for more then.

    Args:
        session: the adapter.
        user: whose items are searched.
        query: what is searched for.
        k: how many items are wanted.
        stored: how many items there are.
        items_of: the item of each hit; what it raises is raised here.
        whole: whether items are wanted; otherwise the first `k` hits, whatever they are.

    Raises:
        DaemonError: as `AdapterSession.call`, likewise CallError.
    """
    asked = k
    while True:
        reply = await session.call("search", user, query, asked)
        hits = reply["hits"][:asked]
        items = items_of(hits)
        # A hit of no item counts towards k: what follows it is not what was asked for.
        keys: dict[str | int, int] = {}
        for rank, item in enumerate(items):
            keys.setdefault(rank if item is None else item, rank)
        is_all = len(keys) >= min(k, stored) or len(hits) < asked
        if is_all or not whole or asked >= _MOST_ASKED * k:
            return ItemHits(hits, items, list(keys.values()), float(reply["took_ms"]))
        asked *= 2
