"""Items as a daemon's documents, and its chunks as items again."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from memconform.client.failures import ContractViolatedError
from memconform.contract.core import Chunk
from memconform.datasets.haystacks import Haystack, Item
from memconform.errors import DaemonError, UsageError
from memconform.runs.corpus import CONTENT_LIMIT, Document

ITEM_ID = "item_id"
"""The key of a document's metadata that holds its item's id."""


@dataclass(frozen=True, slots=True)
class _Place:
    haystack: str
    item: Item


class Shelf:
    """Gives every item a path of the harness's own, and knows what lies where.

    Paths are numbers, in the order of the items: whatever an id holds makes a path that is
    allowed, and items of equal scores come in their own order.
    """

    def __init__(self) -> None:
        self._places: dict[str, _Place] = {}
        self._prefixes: dict[str, str] = {}

    def documents(self, haystacks: Iterable[Haystack]) -> Iterator[Document]:
        """A document an item.

        Raises:
            UsageError: for an item that no daemon can be sent.
        """
        for number, haystack in enumerate(haystacks):
            prefix = self._prefixes[haystack.id] = f"{number:06}/"
            for place, item in enumerate(haystack.items):
                content = item.text.encode()
                if len(content) > CONTENT_LIMIT:
                    raise UsageError(
                        f"{haystack.id}: item {item.id} has {len(content)} bytes; a document may"
                        f" have {CONTENT_LIMIT}",
                        code="item_too_large",
                        hint="split the item",
                    )
                path = f"{prefix}{place:06}.md"
                self._places[path] = _Place(haystack.id, item)
                yield Document(path, content, "text/markdown", {ITEM_ID: item.id})

    def prefix(self, haystack: str) -> str:
        """What the paths of a haystack's documents begin with."""
        return self._prefixes[haystack]

    def refuse_chunkless(self, chunk_counts: dict[str, int]) -> None:
        """Raise DaemonError where an item with a text was made into no chunk."""
        for path, count in chunk_counts.items():
            if not count and self._places[path].item.text:
                raise DaemonError(
                    f"item {self._places[path].item.id} was acknowledged with no chunk",
                    code="index_incomplete",
                    hint="it can never be found, and would look like a bad ranking",
                )

    def fold(self, haystack: str, chunks: Sequence[Chunk]) -> tuple[str, ...]:
        """The items of these chunks, each at the rank of its first.

        Raises:
            ContractViolatedError: for a chunk that is not of an item of the haystack, or says what
                that item does not.
        """
        found: dict[str, None] = {}
        for chunk in chunks:
            place = self._places.get(chunk.path)
            if place is None:
                raise ContractViolatedError(
                    "foreign_chunk", f"{chunk.path} was retrieved, and never ingested"
                )
            if place.haystack != haystack:
                raise ContractViolatedError(
                    "filter_ignored",
                    f"{chunk.path} was retrieved, and pathPrefix is {self.prefix(haystack)!r}",
                )
            named = (chunk.metadata or {}).get(ITEM_ID, place.item.id)
            if named != place.item.id:
                raise ContractViolatedError(
                    "other_item", f"{chunk.path} is item {place.item.id!r}, and came as {named!r}"
                )
            if chunk.text not in place.item.text:
                raise ContractViolatedError(
                    "other_text", f"{chunk.path} came with a text that its document does not hold"
                )
            found[place.item.id] = None
        return tuple(found)
