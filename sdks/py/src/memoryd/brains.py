"""Brains: isolated corpora, each a folder of documents with an index beside it."""

import fcntl
import json
import os
import re
import shutil
import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from memoryd import files, frontmatter
from memoryd.chunking import chunk
from memoryd.embedding import Embedder, RemoteEmbedder
from memoryd.index import Counts, Index, IndexedDocument
from memoryd.problems import Problem, invalid

_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
_RECONCILE_DOCUMENTS = 256
_RECONCILE_BYTES = 2**20
"""So many are read, embedded and indexed at once: who waits for the brain waits for one batch."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NewDocument:
    path: str
    content: bytes
    sidecar: dict[str, Any]
    """`contentType` and, where given, `title`, `tags`, `metadata`."""


@dataclass(frozen=True, slots=True)
class Stored:
    path: str
    chunks: int
    bytes: int
    took_ms: float


class Brain:
    """Thread-safe; one call at a time touches its index."""

    def __init__(self, home: Path, brain_id: str, embedder: Embedder | None) -> None:
        self.id = brain_id
        self.embedder = embedder
        self._documents = home / "brains" / brain_id
        self._sidecars = home / "meta" / brain_id
        self._staging = home / "staging"
        self._description = home / "descriptions" / f"{brain_id}.txt"
        self._index_file = home / "index" / "py" / f"{brain_id}.sqlite"
        self._lock = threading.RLock()
        self._owner = _lock_file(self._index_file.with_suffix(".lock"))
        # Another daemon of this kind holds the index: build one of our own, in memory.
        self._index = self._open_index()
        self._deleted = False
        try:
            self.reconcile()
        except BaseException:
            self.close()
            raise

    def _open_index(self) -> Index:
        embedder = self.embedder.name if self.embedder else None
        if self._owner is None:
            return Index(None, embedder)
        try:
            return Index(self._index_file, embedder)
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:
            # Damaged, say by a power cut. The files are the truth and fill a new one.
            self._remove_index()
            return Index(self._index_file, embedder)

    def _remove_index(self) -> None:
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self._index_file}{suffix}").unlink(missing_ok=True)

    @property
    def description(self) -> str | None:
        with suppress(FileNotFoundError):
            return self._description.read_text(encoding="utf-8")
        return None

    @contextmanager
    def _index_held(self) -> Iterator[Index]:
        with self._lock:
            if self._deleted:
                raise Problem("not_found", f"no brain {self.id!r}")
            yield self._index

    def use(self, read: Callable[[Index], T]) -> T:
        """What `read` makes of the index; no write happens meanwhile."""
        with self._index_held() as index:
            return read(index)

    def counts(self) -> Counts:
        return self.use(Index.counts)

    def ingest(self, documents: Sequence[NewDocument]) -> list[Stored]:
        """Store and index all of `documents`, or none of them.

        Raises:
            Problem: `conflict` where a path would be file and folder at once.
        """
        started = time.perf_counter()
        indexed = self._prepare([(d.path, d.content, d.sidecar) for d in documents])
        with self._index_held() as index:
            self._refuse_conflicts([document.path for document in documents])
            with files.placed(self._staging, self._contents(documents)):
                index.apply(
                    [
                        replace(document, stamp=self._stamp(document.path))
                        for document in indexed
                        if not files.is_hidden(document.path)
                    ]
                )
        took = (time.perf_counter() - started) * 1e3 / len(documents)
        return [
            Stored(
                path=new.path,
                chunks=0 if files.is_hidden(new.path) else len(done.chunks),
                bytes=len(new.content),
                took_ms=took,
            )
            for new, done in zip(documents, indexed, strict=True)
        ]

    def _contents(self, documents: Sequence[NewDocument]) -> Iterator[tuple[Path, bytes]]:
        for document in documents:
            sidecar = json.dumps(document.sidecar, ensure_ascii=False).encode()
            yield self._sidecar(document.path), sidecar
            yield self._documents / document.path, document.content

    def _refuse_conflicts(self, paths: Sequence[str]) -> None:
        new = set(paths)
        # The sidecar of `a` is `a.json`, where `a.json/b` would need a folder.
        taken = new | {f"{path}.json" for path in new}
        for path in new:
            parents = {str(parent) for parent in PurePosixPath(path).parents}
            if parents & taken:
                raise Problem("conflict", f"{path!r}: another document of the batch is its folder")
            for target in (self._documents / path, self._sidecar(path)):
                if target.is_dir():
                    raise Problem("conflict", f"{path!r} is a folder")
                folder = target.parent
                while not folder.is_dir():
                    if folder.exists():
                        raise Problem("conflict", f"a folder of {path!r} is a document")
                    folder = folder.parent

    def _prepare(
        self, sources: Iterable[tuple[str, bytes, dict[str, Any]]]
    ) -> list[IndexedDocument]:
        """Chunk and embed; all chunks go to the embedder in one call."""
        documents = [_read(path, content, sidecar) for path, content, sidecar in sources]
        if self.embedder is None:
            return documents
        vectors = iter(self.embedder.embed([text for d in documents for text in d.chunks]))
        return [replace(d, vectors=[next(vectors) for _ in d.chunks]) for d in documents]

    def reconcile(self) -> None:
        """Bring the index to what the files say."""
        with self._index_held() as index:
            known = index.stamps()
            changed = []
            for path, state in files.walk(self._documents):
                if files.is_hidden(path) or not files.is_canonical(path):
                    continue
                stamp = files.stamp(state, files.status(self._sidecar(path)))
                if known.pop(path, None) != stamp:
                    changed.append((path, stamp, state.st_size))
            if known:
                index.apply(removed=known)
            for batch in _batches(changed):
                documents = self._prepare(
                    (
                        path,
                        (self._documents / path).read_bytes(),
                        files.read_json(self._sidecar(path)),
                    )
                    for path, _, _ in batch
                )
                stamps = (stamp for _, stamp, _ in batch)
                index.apply([replace(d, stamp=s) for d, s in zip(documents, stamps, strict=True)])

    def _sidecar(self, path: str) -> Path:
        return self._sidecars / f"{path}.json"

    def _stamp(self, path: str) -> str:
        return files.stamp((self._documents / path).stat(), files.status(self._sidecar(path)))

    def close(self) -> None:
        with self._lock:
            self._index.close()
            if self._owner is not None:
                os.close(self._owner)
                self._owner = None

    def delete(self) -> None:
        with self._index_held():
            # Renamed first: from then on the brain is gone, however long removing takes.
            grave = self._staging / f"deleted-{uuid.uuid4().hex}"
            self._documents.rename(grave)
            self._deleted = True
            if self._owner is not None:
                self._remove_index()
            self.close()
            shutil.rmtree(self._sidecars, ignore_errors=True)
            self._description.unlink(missing_ok=True)
            shutil.rmtree(grave, ignore_errors=True)


class BrainStore:
    """All brains below one home folder."""

    def __init__(self, home: Path, embedder: Embedder | None) -> None:
        self._home = home
        self._embedder = embedder
        self._open: dict[str, Brain] = {}
        self._gates: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()
        """Of `_gates`."""
        for folder in ("brains", "meta", "descriptions", "staging", "index/py"):
            (home / folder).mkdir(parents=True, exist_ok=True)
        files.sweep(home / "staging")

    def open_all(self) -> None:
        """Open what needs no service for it; the others are opened by their first request."""
        if isinstance(self._embedder, RemoteEmbedder):
            return
        for brain_id in self.ids():
            self.get(brain_id)

    def close(self) -> None:
        for brain in list(self._open.values()):
            brain.close()
        self._open.clear()

    def ids(self) -> list[str]:
        folders = (self._home / "brains").iterdir()
        return sorted(f.name for f in folders if _ID.fullmatch(f.name) and f.is_dir())

    def get(self, brain_id: str) -> Brain:
        """Raises Problem: validation_error for a malformed id, not_found for an unknown one."""
        check_id(brain_id)
        brain = self._open.get(brain_id)
        return brain or self._opened(brain_id)

    def _opened(self, brain_id: str) -> Brain:
        # A gate a brain: opening one may wait for a service, and others must not wait with it.
        with self._lock:
            gate = self._gates.setdefault(brain_id, threading.Lock())
        with gate:
            brain = self._open.get(brain_id)
            if brain is None:
                if not (self._home / "brains" / brain_id).is_dir():
                    raise Problem("not_found", f"no brain {brain_id!r}")
                brain = self._open[brain_id] = Brain(self._home, brain_id, self._embedder)
            return brain

    def create(self, brain_id: str, description: str | None) -> Brain:
        """Raises Problem: validation_error for a malformed id, conflict where it exists."""
        check_id(brain_id)
        try:
            (self._home / "brains" / brain_id).mkdir()
        except FileExistsError:
            raise Problem("conflict", f"brain {brain_id!r} exists") from None
        shutil.rmtree(self._home / "meta" / brain_id, ignore_errors=True)
        if description is not None:
            (self._home / "descriptions" / f"{brain_id}.txt").write_text(description, "utf-8")
        return self.get(brain_id)

    def delete(self, brain_id: str) -> None:
        brain = self.get(brain_id)
        with self._gates[brain_id]:
            brain.delete()
            self._open.pop(brain_id, None)


def _batches(
    changed: Sequence[tuple[str, str, int]],
) -> Iterator[Sequence[tuple[str, str, int]]]:
    """Paths with their stamps and sizes, in runs that are small enough."""
    batch: list[tuple[str, str, int]] = []
    size = 0
    for item in changed:
        if batch and (len(batch) == _RECONCILE_DOCUMENTS or size + item[2] > _RECONCILE_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += item[2]
    if batch:
        yield batch


def check_id(brain_id: str) -> None:
    if brain_id in (".", "..") or not _ID.fullmatch(brain_id):
        raise invalid(f"brainId: {brain_id!r} is not [A-Za-z0-9._-]{{1,128}}")


def _read(path: str, content: bytes, sidecar: dict[str, Any]) -> IndexedDocument:
    try:
        source = frontmatter.parse(content.decode())
    except UnicodeDecodeError:
        source = frontmatter.Document("")
    metadata = {**source.metadata, **(sidecar.get("metadata") or {})}
    title = sidecar.get("title", source.metadata.get("title"))
    tags = sidecar.get("tags", source.metadata.get("tags"))
    return IndexedDocument(
        path=path,
        stamp="",
        title=title if isinstance(title, str) else None,
        tags=tags if isinstance(tags, list) else [],
        metadata=metadata,
        chunks=chunk(source.text),
        vectors=None,
    )


def _lock_file(path: Path) -> int | None:
    """A descriptor that holds the lock until it is closed; None where another process has it."""
    handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    return handle
