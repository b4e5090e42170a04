"""The search index of one brain: SQLite FTS5 for terms, an in-memory matrix for vectors."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from memoryd.embed.embed import Vector
from memoryd.index.filter import Filters, escape_all, escape_nul
from memoryd.index.matrix import VectorMatrix
from memoryd.index.path_order import PathOrder
from memoryd.index.readers import Readers, connect
from memoryd.index.seal import checksum, schema
from memoryd.rank.rank import Hit, Kernel, inverse_l2, round_score
from memoryd.text.terms import match_expression, nfkc
from memoryd.upstream import UpstreamError
from memoryd.wire import exact_json

_FORMAT = "2"

_MATCHING_SLOTS = """
SELECT id - 1 FROM chunks JOIN documents USING (path)
WHERE (:paths IS NULL OR path IN (SELECT value FROM json_each(:paths)))
  AND (:session_ids IS NULL OR session_id IN (SELECT value FROM json_each(:session_ids)))
  AND (:tags IS NULL OR EXISTS (
    SELECT 1 FROM json_each(documents.tags) AS has JOIN json_each(:tags) AS wanted
    ON has.value = wanted.value
  ))
"""


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
class StoredChunk:
    path: str
    ordinal: int
    text: str
    title: str | None
    metadata: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Counts:
    documents: int
    chunks: int
    vectors: int


class Index:
    """Many threads may read it or one may write it; its brain holds a lock around every call.

    A chunk has a slot, a small integer that is its position in the vector matrix and, plus one,
    its rowid in SQLite; freed slots are reused, so the matrix stays dense.
    """

    def __init__(self, file: Path | None, embedder: str | None) -> None:
        """Open the index at `file`, or one in memory; an index of another `embedder` is emptied."""
        self._embedder = embedder
        self._db = connect(file)
        self._readers = Readers(file, self._db)
        # An acknowledged write must survive the process, not the machine, so nothing is fsynced.
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = OFF")
        self._db.executescript(schema())
        self._drop_if_incompatible()
        self._load()

    def close(self) -> None:
        self._readers.close()
        self._db.close()

    def _drop_if_incompatible(self) -> None:
        """Empty an index of another format or embedder; the files fill it again."""
        made_by = made_by_name(self._embedder)
        row = self._db.execute("SELECT value FROM settings WHERE key = 'made_by'").fetchone()
        if row is not None and row[0] != made_by:
            for table in ("documents", "chunks"):
                self._db.execute(f"DELETE FROM {table}")  # noqa: S608 - names from the line above
            self._db.execute("INSERT INTO chunk_terms(chunk_terms) VALUES ('delete-all')")
        if row is None or row[0] != made_by:
            # Only then, so that an index opens on a full disk.
            self._db.execute("INSERT OR REPLACE INTO settings VALUES ('made_by', ?)", (made_by,))

    def _load(self) -> None:
        self._keys: list[tuple[bytes, int] | None] = []
        self._free: list[int] = []
        self._path_order: PathOrder | None = None
        self._vectors = VectorMatrix() if self._embedder else None
        for id_, path, ordinal, vector in self._db.execute(
            "SELECT id, path, ordinal, vector FROM chunks ORDER BY id"
        ):
            while len(self._keys) < id_ - 1:
                self._free.append(len(self._keys))
                self._keys.append(None)
            self._keys.append((path.encode(), ordinal))
            if self._vectors is not None and vector is not None:
                self._vectors.put(id_ - 1, np.frombuffer(vector, dtype="<f4"))

    def stamps(self) -> dict[str, str]:
        """The stamp of each indexed document, by path."""
        return dict(self._db.execute("SELECT path, stamp FROM documents"))

    @property
    def dimensions(self) -> int:
        """The dimensions of the vectors; 0 if there are none yet."""
        return self._vectors.dimensions if self._vectors is not None else 0

    def counts(self) -> Counts:
        with self._readers.connection() as db:
            documents, chunks, vectors = db.execute(
                "SELECT (SELECT count(*) FROM documents), count(*), count(vector) FROM chunks"
            ).fetchone()
        return Counts(documents, chunks, vectors)

    def apply(self, documents: Sequence[IndexedDocument] = (), removed: Iterable[str] = ()) -> None:
        """Add `documents`, replacing those of the same path, and remove the paths `removed`.

        Raises:
            UpstreamError: if the vectors have other dimensions than those in the index.
        """
        db = self._db
        self._path_order = None
        db.execute("BEGIN IMMEDIATE")
        try:
            for path in removed:
                self._remove(path)
            for document in documents:
                self._remove(document.path)
                self._insert(document)
            db.execute("COMMIT")
        except BaseException:
            # A full disk has already ended the transaction.
            if db.in_transaction:
                db.execute("ROLLBACK")
            self._load()
            raise

    def _remove(self, path: str) -> None:
        rows = self._db.execute("SELECT id, text FROM chunks WHERE path = ?", (path,)).fetchall()
        for id_, text in rows:
            self._db.execute(
                "INSERT INTO chunk_terms(chunk_terms, rowid, text) VALUES ('delete', ?, ?)",
                (id_, nfkc(text)),
            )
            self._keys[id_ - 1] = None
            self._free.append(id_ - 1)
        if rows:
            self._db.execute("DELETE FROM chunks WHERE path = ?", (path,))
        self._db.execute("DELETE FROM documents WHERE path = ?", (path,))

    def _require_dimensions(self, vectors: Sequence[Vector] | None) -> None:
        expected = self.dimensions
        for vector in vectors or ():
            if expected and len(vector) != expected:
                raise _dimension_mismatch(len(vector), expected)

    def _insert(self, document: IndexedDocument) -> None:
        self._require_dimensions(document.vectors)
        session = document.metadata.get("session_id")
        row = (
            document.path,
            document.stamp,
            document.title,
            escape_nul(session) if isinstance(session, str) else None,
            json.dumps(escape_all(document.tags)),
            exact_json.dumps(document.metadata),
        )
        vectors: Sequence[Vector | None] = document.vectors or [None] * len(document.chunks)
        blobs = [None if vector is None else vector.astype("<f4").tobytes() for vector in vectors]
        content = [value for chunk in zip(document.chunks, blobs, strict=True) for value in chunk]
        self._db.execute(
            "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?)",
            (*row, checksum(made_by_name(self._embedder), *row, *content)),
        )
        path = document.path.encode()
        for ordinal, text in enumerate(document.chunks):
            slot = self._free.pop() if self._free else len(self._keys)
            if slot == len(self._keys):
                self._keys.append(None)
            self._keys[slot] = (path, ordinal)
            vector = vectors[ordinal]
            if self._vectors is not None and vector is not None:
                self._vectors.put(slot, vector)
            self._db.execute(
                "INSERT INTO chunks VALUES (?, ?, ?, ?, ?)",
                (slot + 1, document.path, ordinal, text, blobs[ordinal]),
            )
            self._db.execute(
                "INSERT INTO chunk_terms(rowid, text) VALUES (?, ?)", (slot + 1, nfkc(text))
            )

    def order(self, hit: Hit) -> tuple[float, bytes, int]:
        """The sort key of the ranking: best score, then path by UTF-8 bytes, then ordinal."""
        key = self._keys[hit.slot]
        if key is None:
            raise LookupError(f"slot {hit.slot} holds no chunk")
        return (-hit.score, *key)

    def keyword(self, query: str, filters: Filters, limit: int) -> list[Hit]:
        """The best `limit` chunks by bm25, with the statistics of the whole brain."""
        expression = match_expression(query)
        if not expression:
            return []
        with self._readers.connection() as db:
            rows = db.execute(
                "SELECT rowid - 1, -bm25(chunk_terms) FROM chunk_terms WHERE chunk_terms MATCH ?",
                (expression,),
            ).fetchall()
        if not rows:
            return []
        slots = np.fromiter((row[0] for row in rows), np.int64, len(rows))
        scores = np.fromiter((row[1] for row in rows), np.float64, len(rows))
        if filters.restricts:
            allowed = self._allowed(filters)[slots]
            slots, scores = slots[allowed], scores[allowed]
        return self._best(slots, scores, limit)

    def semantic(
        self, query: Vector, filters: Filters, limit: int, kernel: Kernel = "cosine"
    ) -> list[Hit]:
        """The best `limit` chunks by `kernel`, an exact search over all that the filters allow.

        Raises:
            UpstreamError: if `query` has other dimensions than the vectors in the index.
        """
        if self._vectors is None:
            raise LookupError("this index holds no vectors")
        if self.dimensions not in (0, len(query)):
            raise _dimension_mismatch(len(query), self.dimensions)
        slots = np.flatnonzero(self._allowed(filters) if filters.restricts else self._used())
        slots = self._vectors.contenders(query, slots, limit)
        dots = self._vectors.dots(query, slots)
        if kernel == "inverse-l2":
            # Few slots are left, so that arrays would save nothing.
            dots = np.array([inverse_l2(round_score(dot)) for dot in dots.tolist()])
        return self._best(slots, dots, limit)

    def _best(
        self, slots: npt.NDArray[np.int64], scores: npt.NDArray[np.float64], limit: int
    ) -> list[Hit]:
        # Keep all ties with the last place: the path decides between them.
        scaled = np.floor(scores * 1e9 + 0.5)
        if len(scaled) > limit:
            threshold = np.partition(scaled, len(scaled) - limit)[len(scaled) - limit]
            selected = scaled >= threshold
            slots, scores = slots[selected], scores[selected]
        hits = (Hit(int(s), round_score(float(x))) for s, x in zip(slots, scores, strict=True))
        return sorted(hits, key=self.order)[:limit]

    def _used(self) -> npt.NDArray[np.bool_]:
        used = np.ones(len(self._keys), dtype=bool)
        used[self._free] = False
        return used

    def _allowed(self, filters: Filters) -> npt.NDArray[np.bool_]:
        """A mask of the slots that the filters allow."""
        allowed = self._matching_slots(filters) if filters.has_lists else self._used()
        for prefix in filters.prefixes:
            has_prefix = np.zeros(len(self._keys), dtype=bool)
            has_prefix[self._ordered_paths().starting_with(prefix.encode())] = True
            allowed &= has_prefix
        return allowed

    def _ordered_paths(self) -> PathOrder:
        if self._path_order is None:
            self._path_order = PathOrder(self._keys)
        return self._path_order

    def _matching_slots(self, filters: Filters) -> npt.NDArray[np.bool_]:
        """A mask of the slots that match the lists of the filters."""
        values = {
            "paths": _json_or_none(filters.paths_without_nul()),
            "tags": _json_or_none(escape_all(filters.tags)),
            "session_ids": _json_or_none(escape_all(filters.session_ids)),
        }
        matching = np.zeros(len(self._keys), dtype=bool)
        with self._readers.connection() as db:
            for (slot,) in db.execute(_MATCHING_SLOTS, values):
                matching[slot] = True
        return matching

    def chunk(self, slot: int) -> StoredChunk:
        with self._readers.connection() as db:
            path, ordinal, text, title, metadata = db.execute(
                "SELECT path, ordinal, text, title, metadata"
                " FROM chunks JOIN documents USING (path) WHERE id = ?",
                (slot + 1,),
            ).fetchone()
        return StoredChunk(path, ordinal, text, title, exact_json.loads(metadata))


def made_by_name(embedder: str | None) -> str:
    """What an index was made by: its format and the embedder of its vectors."""
    return f"{_FORMAT}/{embedder or 'none'}"


def _dimension_mismatch(got: int, expected: int) -> UpstreamError:
    return UpstreamError(
        "bad_gateway", f"the embedder answers {got} dimensions, the index holds {expected}"
    )


def _json_or_none(values: Sequence[object] | None) -> str | None:
    return None if values is None else json.dumps(values)
