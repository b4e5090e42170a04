"""Mapping between a benchmark's items and a daemon's documents and chunks."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from memconform.bench.tasks import Task
from memconform.client.failures import ContractViolatedError
from memconform.contract.core import Chunk
from memconform.contract.wire import JsonValue
from memconform.datasets.haystacks import Haystack, Item
from memconform.datasets.time_phrases import to_date_time, to_rfc3339
from memconform.errors import DaemonError, UsageError
from memconform.ingest.documents import CONTENT_LIMIT, Document
from memconform.ingest.ingested import IngestedDocuments

ITEM_ID = "item_id"
"""The metadata key of a document that contains its item's id."""


Dates = Literal["none", "known", "needed"]
"""Which items get a date: none; those that have one; all, and an item without one is an error."""

DATE = "date"
"""The metadata key of a document that contains its date (core.rank.recency)."""

SESSION_ID, INDEX, SPEAKER = "session_id", "index", "speaker"
"""The metadata keys of a turn (core.rank.conversation)."""


@dataclass(frozen=True, slots=True)
class _Location:
    """What is kept of an item; its text may be half of the harness's memory."""

    haystack: str
    item: str
    """The item's id."""
    counts_for: str
    """The id that finding it counts for."""
    has_text: bool


class DocumentMap:
    """The corpus of haystacks: gives every item its own path, and maps chunks back to items.

    Paths are numbers in the order of the items. They are therefore valid whatever characters an id
    contains, and items with equal scores keep their order.
    """

    def __init__(
        self, haystacks: Iterable[Haystack], *, dates: Dates = "none", turns: bool = False
    ) -> None:
        """Say what is added to the documents' metadata.

        Args:
            haystacks: What is ingested.
            dates: Which items get their date.
            turns: Whether items of a session get what conversations are ranked by: the session,
                the position and the speaker (core.rank.conversation).
        """
        self._haystacks = haystacks
        self._dates = dates
        self._turns = turns
        self._locations: dict[str, _Location] = {}
        self._prefixes: dict[str, str] = {}
        self._paths: dict[str, list[str]] = {}
        self._searchable: dict[str, tuple[int, int]] = {}
        self._ingested: IngestedDocuments

    def documents(self) -> Iterator[Document]:
        """Yield one document per item.

        Raises:
            UsageError: if an item exceeds the contract's size limit (`item_too_large`), or its
                date is needed and it has none (`no_item_date`).
        """
        for number, haystack in enumerate(self._haystacks):
            prefix = self._prefixes[haystack.id] = f"{number:06}/"
            paths = self._paths[haystack.id] = []
            for index, item in enumerate(haystack.items):
                content = document_text(item).encode()
                if len(content) > CONTENT_LIMIT:
                    raise UsageError(
                        f"{haystack.id}: item {item.id} has {len(content)} bytes; a document may"
                        f" have {CONTENT_LIMIT}",
                        code="item_too_large",
                        hint="split the item",
                    )
                path = f"{prefix}{index:06}.md"
                self._locations[path] = _Location(
                    haystack.id, item.id, item.source or item.id, bool(item.text)
                )
                paths.append(path)
                metadata = self._metadata(haystack, item, index)
                yield Document(path, content, "text/markdown", metadata)

    def _metadata(self, haystack: Haystack, item: Item, index: int) -> dict[str, JsonValue]:
        metadata: dict[str, JsonValue] = {ITEM_ID: item.id}
        # A further key of an item is not a turn: it would stand between two that are.
        if self._turns and item.group and not item.source:
            # A brain may hold several haystacks, whose sessions have the same names.
            metadata |= {SESSION_ID: f"{haystack.id}/{item.group}", INDEX: index}
            if item.speaker:
                metadata[SPEAKER] = item.speaker
        moment = None if self._dates == "none" else to_date_time(item.date)
        if moment is None and self._dates != "needed":
            return metadata
        if moment is None:
            raise UsageError(
                f"{haystack.id}: item {item.id} has no date"
                + ("" if item.date is None else f" that can be read: {item.date!r}"),
                code="no_item_date",
                hint="--recency and --temporal rank by dates; an item without one would look old",
            )
        return metadata | {DATE: to_rfc3339(moment)}

    def record_ingested(self, ingested: IngestedDocuments) -> None:
        """Record the documents as the daemon acknowledged them.

        Raises:
            DaemonError: if an item with text produced no chunk (`index_incomplete`).
        """
        self._ingested = ingested
        for path, location in self._locations.items():
            if ingested.chunk_count(path) == 0 and location.has_text:
                raise DaemonError(
                    f"item {location.item} was acknowledged with no chunk",
                    code="index_incomplete",
                    hint="the item can never be found, which would look like a bad ranking",
                )
        self.is_counted = None not in map(ingested.chunk_count, self._locations)
        self._searchable = {
            haystack: self._counts(paths) for haystack, paths in self._paths.items()
        }

    def searchable_counts(
        self, haystack: str, candidates: Collection[str] | None
    ) -> tuple[int, int]:
        """The numbers of chunks and of items that a search can find."""
        if candidates is None:
            return self._searchable[haystack]
        return self._counts(self.paths(haystack, candidates))

    def _counts(self, paths: Sequence[str]) -> tuple[int, int]:
        items: set[str] = set()
        chunks = 0
        for path in paths:
            location, count = self._locations[path], self._ingested.chunk_count(path)
            # A document whose chunks nobody counts is expected to be one, unless it is empty.
            if searchable := int(location.has_text) if count is None else count:
                items.add(location.counts_for)
                chunks += searchable
        return chunks, len(items)

    def prefix(self, haystack: str) -> str:
        """The common path prefix of a haystack's documents."""
        return self._prefixes[haystack]

    def paths(self, haystack: str, items: Collection[str]) -> list[str]:
        """The document paths of the given items of a haystack."""
        return [path for path in self._paths[haystack] if self._locations[path].item in items]

    def to_item_ranking(self, task: Task, chunks: Sequence[Chunk]) -> tuple[str, ...]:
        """The items of ranked chunks, each at the rank of its first chunk.

        Raises:
            ContractViolatedError: if a chunk is of no ingested document, or its text or metadata
                contradicts its document, or the filters exclude it (`filter_ignored`).
        """
        ranking: dict[str, None] = {}
        self._ingested.require_own(chunks)
        for chunk in chunks:
            location = self._locations[chunk.path]
            pruned = task.candidates is not None and location.item not in task.candidates
            if location.haystack != task.haystack or pruned:
                raise ContractViolatedError(
                    "filter_ignored", f"{chunk.path} was retrieved, but the filters exclude it"
                )
            item_id = (chunk.metadata or {}).get(ITEM_ID, location.item)
            if item_id != location.item:
                raise ContractViolatedError(
                    "other_item",
                    f"{chunk.path} is item {location.item!r}, but was returned as {item_id!r}",
                )
            ranking[location.counts_for] = None
        return tuple(ranking)


def document_text(item: Item) -> str:
    """The content of an item's document.

    A first line `---` would start front matter, which daemons do not index
    (core.chunk.front-matter); after an empty line it is text.
    """
    return f"\n{item.text}" if item.text.startswith("---") else item.text
