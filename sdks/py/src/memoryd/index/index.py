"""The search index of one brain, in memory; a log keeps what it was made from."""

import logging
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, repeat
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from memoryd.embed.embed import Vector
from memoryd.index.chunk import Chunk
from memoryd.index.filter import Filters
from memoryd.index.log import Change, Log, Record, Removal
from memoryd.index.matrix import VectorMatrix
from memoryd.index.path_order import PathOrder
from memoryd.index.postings import Mask, Postings
from memoryd.index.sessions import SessionChunk, Sessions, Turn
from memoryd.rank.rank import Hit, Kernel, inverse_l2, round_score
from memoryd.text.stop_words import keywords
from memoryd.text.terms import query_terms
from memoryd.upstream import UpstreamError
from memoryd.wire import exact_json

_log = logging.getLogger(__name__)

LEAST_WASTE = 1024
"""How much that is no longer used is kept in any case, as slots and as records of the log."""
LEAST_WASTED_BYTES = 2**22
"""The same in bytes of the log."""

_READ_AT_ONCE = 1024


@dataclass(frozen=True, slots=True)
class IndexedDocument:
    """A document to index, with one vector per chunk (None without an embedder)."""

    path: str
    stamp: str
    title: str | None
    tags: list[str]
    metadata: dict[str, Any]
    chunks: list[str]
    vectors: list[Vector] | None


@dataclass(frozen=True, slots=True)
class Counts:
    documents: int
    chunks: int
    vectors: int


@dataclass(frozen=True, slots=True)
class _Document:
    record: Record
    """Without the vectors, which are in the matrix."""
    slots: range
    turn: Turn | None
    size: int
    """In bytes of the log."""


class Index:
    """Many threads may read it or one may write it; its brain holds a lock around every call.

    A chunk has a slot, a small integer: its place in the postings and in the vector matrix. Slots
    are given in ascending order, and those of chunks that are gone stay free until most are free.
    """

    def __init__(self, file: Path | None, embedder: str | None) -> None:
        """Open the index whose log is `file`, or one without a log.

        It lacks what the log has lost, or has of another `embedder`.

        Raises:
            OSError: if the log cannot be read, or begun.
        """
        self._documents: dict[str, _Document] = {}
        self._chunks = self._turns = self._bytes = 0
        self._ordering = threading.Lock()
        self._clear()
        self._log = None if file is None else Log(file, embedder)
        if self._log is not None:
            changes = self._log.read()
            while batch := list(islice(changes, _READ_AT_ONCE)):
                self._apply(batch)
            self._tidy()

    def _clear(self) -> None:
        """Begin without slots; the next vectors may have other dimensions."""
        self._slots: list[_Document | None] = []
        self._taken = bytearray()
        """1 for each slot that is not free."""
        self._postings = Postings()
        self._vectors = VectorMatrix()
        self._forget_orders()

    def _forget_orders(self) -> None:
        self._path_order: PathOrder | None = None
        self._sessions: Sessions | None = None

    def close(self) -> None:
        """Close the log; the index can still be read."""
        if self._log is not None:
            self._log.close()

    def stamps(self) -> dict[str, str]:
        """The stamp of each indexed document, by path."""
        return {path: document.record.stamp for path, document in self._documents.items()}

    def counts(self) -> Counts:
        vectors = self._chunks if self._vectors.dimensions else 0
        return Counts(len(self._documents), self._chunks, vectors)

    def apply(self, documents: Sequence[IndexedDocument] = (), removed: Iterable[str] = ()) -> None:
        """Add `documents`, replacing those of the same path, and remove the paths `removed`.

        All or nothing: what may fail comes before the first change in memory.

        Raises:
            UpstreamError: if the vectors have other dimensions than those in the index.
            OSError: if the log cannot be written.
        """
        self._require_dimensions(v for document in documents for v in document.vectors or ())
        changes: list[Change] = [*map(Removal, removed), *map(_record, documents)]
        sizes = repeat(0) if self._log is None else self._log.append(changes)
        self._apply(zip(changes, sizes, strict=False))
        self._tidy()

    def _require_dimensions(self, vectors: Iterable[Vector]) -> None:
        expected = self._vectors.dimensions
        for vector in vectors:
            expected = expected or len(vector)
            if len(vector) != expected:
                raise UpstreamError(
                    "bad_gateway",
                    f"the embedder answers {len(vector)} dimensions, the index holds {expected}",
                )

    def _apply(self, changes: Iterable[tuple[Change, int]]) -> None:
        """Change what is in memory; changes come with the bytes that they take in the log."""
        self._forget_orders()
        vectors: list[npt.NDArray[np.float32]] = []
        dimensions = self._vectors.dimensions
        for change, size in changes:
            self._remove(change.path)
            if not self._chunks:
                self._clear()
                vectors.clear()
                dimensions = 0
            if isinstance(change, Removal):
                continue
            if change.vectors is not None:
                found = change.vectors.shape[1]
                dimensions = dimensions or found
                if found != dimensions:
                    # The log has lost the removal of all others: this one is indexed again.
                    continue
                vectors.append(change.vectors)
            self._insert(change, size)
        if vectors:
            rows = np.concatenate(vectors)
            self._vectors.put(len(self._slots) - len(rows), rows)

    def _remove(self, path: str) -> None:
        document = self._documents.pop(path, None)
        if document is None:
            return
        for slot in document.slots:
            self._slots[slot] = None
            self._taken[slot] = 0
        self._chunks -= len(document.slots)
        self._bytes -= document.size
        if document.turn is not None:
            self._turns -= len(document.slots)

    def _insert(self, record: Record, size: int) -> None:
        first, count = len(self._slots), len(record.chunks)
        turn = Turn.of(record.session, record.metadata)
        slots = range(first, first + count)
        document = _Document(record._replace(vectors=None), slots, turn, size)
        self._documents[record.path] = document
        self._slots += [document] * count
        self._taken += b"\1" * count
        self._chunks += count
        self._bytes += size
        if turn is not None:
            self._turns += count
        for text in record.chunks:
            self._postings.add(text)

    def _tidy(self) -> None:
        """Drop what is no longer used, from memory and from the log, once it is most of them."""
        if len(self._slots) > 2 * self._chunks + LEAST_WASTE:
            self._compact()
        log = self._log
        if log is None or not (
            log.damaged
            or log.records > 2 * len(self._documents) + LEAST_WASTE
            or log.size - log.tolerated > 2 * self._bytes + LEAST_WASTED_BYTES
        ):
            return
        try:
            self._log = log.rewritten(self._records())
        except OSError as error:
            _log.warning("cannot rewrite the log of an index, which stays as it is: %s", error)
            log.records, log.damaged, log.tolerated = 0, False, log.size

    def _compact(self) -> None:
        """Renumber the slots without those that are free."""
        taken = self._mask()
        self._postings.keep(taken)
        self._vectors.keep(taken)
        self._slots = []
        for path, document in sorted(self._documents.items(), key=lambda d: d[1].slots.start):
            slots = range(len(self._slots), len(self._slots) + len(document.slots))
            self._documents[path] = moved = replace(document, slots=slots)
            self._slots += [moved] * len(slots)
        self._taken = bytearray(b"\1" * len(self._slots))
        self._forget_orders()

    def _records(self) -> Iterator[Record]:
        for document in self._documents.values():
            yield document.record._replace(vectors=self._vectors.rows(document.slots))

    def order(self, hit: Hit) -> tuple[float, str, int]:
        """The sort key of the ranking: best score, then path, then ordinal.

        Texts are compared by code points, which is the order of their bytes in UTF-8.
        """
        return -hit.score, self._document(hit.slot).record.path, hit.slot

    def _document(self, slot: int) -> _Document:
        document = self._slots[slot]
        if document is None:
            raise LookupError(f"slot {slot} holds no chunk")
        return document

    def keyword(self, query: str, filters: Filters, limit: int) -> list[Hit]:
        """The best `limit` chunks by bm25, with the statistics of the whole brain."""
        taken = self._mask()
        scores = self._postings.scores(query, taken, self._text)
        slots = np.flatnonzero(scores)
        slots = slots[self._allowed(filters, taken)[slots]]
        return self._best(slots, scores[slots], limit)

    def semantic(
        self, query: Vector, filters: Filters, limit: int, kernel: Kernel = "cosine"
    ) -> list[Hit]:
        """The best `limit` chunks by `kernel`, an exact search over all that the filters allow.

        Raises:
            UpstreamError: if `query` has other dimensions than the vectors in the index.
        """
        self._require_dimensions([query])
        allowed = self._allowed(filters, self._mask())
        slots = self._vectors.contenders(query, np.flatnonzero(allowed), limit)
        dots = self._vectors.dots(query, slots)
        if kernel == "inverse-l2":
            # Few slots are left, so that arrays would save nothing.
            dots = np.array([inverse_l2(round_score(dot)) for dot in dots.tolist()])
        return self._best(slots, dots, limit)

    @property
    def has_turns(self) -> bool:
        """Whether any chunk is a turn of a conversation."""
        return self._turns > 0

    def conversation(
        self, query: str, vector: Vector | None, filters: Filters, limit: int
    ) -> list[Hit]:
        """The best `limit` chunks as turns of conversations; without `vector`, by words alone.

        Raises:
            UpstreamError: if `vector` has other dimensions than the vectors in the index.
        """
        sessions, asked = self._ordered_sessions(), query_terms(query)
        turns, slots = sessions.turns, sessions.slots
        if not len(slots):
            return []
        times, taken = Counter(keywords(asked)), self._mask()
        found = self._postings.term_scores(times, taken, self._text)
        words = turns.words((sessions.places(at), times[term] * s) for term, at, s in found)
        wanted, vectors = self._allowed(filters, taken)[slots], None
        if vector is None:
            wanted &= words > 0
        else:
            vectors = turns.vectors(self._cosines(vector)[slots])
        scores = turns.scores(words, vectors, sessions.named(asked))
        return self._best(slots[wanted], scores[wanted], limit)

    def _cosines(self, query: Vector) -> npt.NDArray[np.float64]:
        """The rounded cosine of each slot that is taken."""
        self._require_dimensions([query])
        cosines = np.zeros(len(self._slots))
        slots = np.flatnonzero(self._mask())
        cosines[slots] = np.floor(self._vectors.dots(query, slots) * 1e9 + 0.5) / 1e9
        return cosines

    def _ordered_sessions(self) -> Sessions:
        with self._ordering:
            if self._sessions is None:
                self._sessions = Sessions(
                    SessionChunk.of(document.turn, path, slot, text)
                    for path, document in self._documents.items()
                    for slot, text in zip(document.slots, document.record.chunks, strict=True)
                )
            return self._sessions

    def _best(
        self, slots: npt.NDArray[np.int64], scores: npt.NDArray[np.float64], limit: int
    ) -> list[Hit]:
        # Keep all ties with the last place: the path decides between them.
        scaled = np.floor(scores * 1e9 + 0.5)
        if len(scaled) > limit:
            threshold = np.partition(scaled, len(scaled) - limit)[len(scaled) - limit]
            selected = scaled >= threshold
            slots, scaled = slots[selected], scaled[selected]
        hits = map(Hit, slots.tolist(), (scaled / 1e9).tolist())
        return sorted(hits, key=self.order)[:limit]

    def _mask(self) -> Mask:
        """Whether each slot is taken, as a copy: the original could not grow while it is viewed."""
        return np.array(self._taken, dtype=np.bool_)

    def _allowed(self, filters: Filters, taken: Mask) -> Mask:
        """A mask of the slots that are `taken` and that the filters allow."""
        allowed = self._matching(filters) if filters.has_lists else taken
        for prefix in filters.prefixes:
            has_prefix = np.zeros(len(self._slots), dtype=np.bool_)
            has_prefix[self._ordered_paths().starting_with(prefix)] = True
            allowed = allowed & has_prefix
        return allowed

    def _ordered_paths(self) -> PathOrder:
        with self._ordering:
            if self._path_order is None:
                self._path_order = PathOrder((path, d.slots) for path, d in self._documents.items())
            return self._path_order

    def _matching(self, filters: Filters) -> Mask:
        """A mask of the slots that match the lists of the filters."""
        documents: Iterable[_Document] = self._documents.values()
        if filters.paths is not None:
            documents = [self._documents[p] for p in {*filters.paths} & self._documents.keys()]
        tags = None if filters.tags is None else {*filters.tags}
        sessions = None if filters.session_ids is None else {*filters.session_ids}
        slots = [
            slot
            for document in documents
            if (sessions is None or document.record.session in sessions)
            and (tags is None or not tags.isdisjoint(document.record.tags))
            for slot in document.slots
        ]
        matching = np.zeros(len(self._slots), dtype=np.bool_)
        matching[slots] = True
        return matching

    def _text(self, slot: int) -> str:
        document = self._document(slot)
        return document.record.chunks[slot - document.slots.start]

    def chunk(self, slot: int, score: float = 0.0) -> Chunk:
        document = self._document(slot)
        record, ordinal = document.record, slot - document.slots.start
        return Chunk(
            path=record.path,
            ordinal=ordinal,
            score=score,
            text=record.chunks[ordinal],
            title=record.title,
            metadata_json=record.metadata,
        )


def _record(document: IndexedDocument) -> Record:
    session = document.metadata.get("session_id")
    return Record(
        path=document.path,
        stamp=document.stamp,
        title=document.title,
        tags=document.tags,
        session=session if isinstance(session, str) else None,
        metadata=exact_json.dumps(document.metadata),
        chunks=document.chunks,
        vectors=np.array(document.vectors, dtype=np.float32) if document.vectors else None,
    )
