"""Items as a daemon's documents, and its chunks as items again."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from memconform.bench.tasks import Task
from memconform.client.failures import ContractViolatedError
from memconform.contract.core import Chunk
from memconform.datasets.haystacks import Haystack, Item
from memconform.errors import DaemonError, UsageError
from memconform.ingest.documents import CONTENT_LIMIT, Document
from memconform.ingest.ingested import IngestedDocuments

ITEM_ID = "item_id"
"""The key of a document's metadata that holds its item's id."""


@dataclass(frozen=True, slots=True)
class _Place:
    haystack: str
    item: Item


class DocumentMap:
    """The corpus of haystacks: gives every item a path of its own, and knows what lies where.

    Paths are numbers, in the order of the items: whatever an id holds makes a path that is
    allowed, and items of equal scores come in their own order.
    """

    def __init__(self, haystacks: Iterable[Haystack]) -> None:
        self._haystacks = haystacks
        self._places: dict[str, _Place] = {}
        self._prefixes: dict[str, str] = {}
        self._chunks: dict[str, int] = {}
        self._paths: dict[str, list[str]] = {}
        self._reach: dict[str, tuple[int, int]] = {}
        self._ingested: IngestedDocuments

    def documents(self) -> Iterator[Document]:
        """A document an item.

        Raises:
            UsageError: for an item that no daemon can be sent.
        """
        for number, haystack in enumerate(self._haystacks):
            prefix = self._prefixes[haystack.id] = f"{number:06}/"
            paths = self._paths[haystack.id] = []
            for place, item in enumerate(haystack.items):
                content = document_text(item).encode()
                if len(content) > CONTENT_LIMIT:
                    raise UsageError(
                        f"{haystack.id}: item {item.id} has {len(content)} bytes; a document may"
                        f" have {CONTENT_LIMIT}",
                        code="item_too_large",
                        hint="split the item",
                    )
                path = f"{prefix}{place:06}.md"
                self._places[path] = _Place(haystack.id, item)
                paths.append(path)
                yield Document(path, content, "text/markdown", {ITEM_ID: item.id})

    def take(self, ingested: IngestedDocuments) -> None:
        """Take in what became of each document.

        Raises:
            DaemonError: where an item with a text was made into no chunk.
        """
        self._ingested = ingested
        for path, place in self._places.items():
            if not ingested.chunk_count(path) and place.item.text:
                raise DaemonError(
                    f"item {place.item.id} was acknowledged with no chunk",
                    code="index_incomplete",
                    hint="it can never be found, and would look like a bad ranking",
                )
        self._chunks = {path: ingested.chunk_count(path) for path in self._places}
        self._reach = {haystack: self._counted(paths) for haystack, paths in self._paths.items()}

    def searchable_counts(
        self, haystack: str, candidates: Collection[str] | None
    ) -> tuple[int, int]:
        """How many chunks, and how many items, there are to be found."""
        if candidates is None:
            return self._reach[haystack]
        return self._counted(self.paths(haystack, candidates))

    def _counted(self, paths: Sequence[str]) -> tuple[int, int]:
        items = {_id(self._places[path].item) for path in paths if self._chunks[path]}
        return sum(self._chunks[path] for path in paths), len(items)

    def prefix(self, haystack: str) -> str:
        """What the paths of a haystack's documents begin with."""
        return self._prefixes[haystack]

    def paths(self, haystack: str, items: Collection[str]) -> list[str]:
        """Where these items of a haystack lie."""
        return [path for path in self._paths[haystack] if self._places[path].item.id in items]

    def to_item_ranking(self, task: Task, chunks: Sequence[Chunk]) -> tuple[str, ...]:
        """The items of these chunks, each at the rank of its first.

        Raises:
            ContractViolatedError: for a chunk that is not of an item that was asked for, or says
                what that item does not.
        """
        found: dict[str, None] = {}
        self._ingested.require_own(chunks)
        for chunk in chunks:
            place = self._places[chunk.path]
            pruned = task.candidates is not None and place.item.id not in task.candidates
            if place.haystack != task.haystack or pruned:
                raise ContractViolatedError(
                    "filter_ignored", f"{chunk.path} was retrieved, which the filters leave out"
                )
            named = (chunk.metadata or {}).get(ITEM_ID, place.item.id)
            if named != place.item.id:
                raise ContractViolatedError(
                    "other_item", f"{chunk.path} is item {place.item.id!r}, and came as {named!r}"
                )
            found[_id(place.item)] = None
        return tuple(found)


def document_text(item: Item) -> str:
    """What stands in an item's document.

    A first line `---` would begin front matter, which daemons take out of what can be found
    (core.chunk.front-matter); behind an empty line it is text.
    """
    return f"\n{item.text}" if item.text.startswith("---") else item.text


def _id(item: Item) -> str:
    """What finding an item counts as."""
    return item.source or item.id
