"""A brain: one isolated corpus, its documents as files and an index of them."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from memoryd.changes import Hub
from memoryd.commit import committed, grave_in
from memoryd.embedding import Embedder
from memoryd.index import Counts, Index, IndexedDocument
from memoryd.index_file import IndexFile
from memoryd.indexing import prepare
from memoryd.locks import SharedLock
from memoryd.paths import is_hidden
from memoryd.problems import Problem, named
from memoryd.reconcile import batches, differences
from memoryd.staged import Document, Staged
from memoryd.tree import Tree

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


@dataclass(frozen=True, slots=True)
class _Prepared:
    document: Document
    indexed: IndexedDocument


class Brain:
    """Thread-safe. No lock but `_opening` is held while an embedder is asked.

    So neither a read of the files nor a search waits for somebody else's embeddings. Where both
    are taken, the lock of the index comes before that of the files.
    """

    def __init__(self, home: Path, brain_id: str, embedder: Embedder | None) -> None:
        self.id = brain_id
        self.embedder = embedder
        self.hub = Hub()
        self._documents = home / "brains" / brain_id
        self._sidecars = home / "meta" / brain_id
        self._staging = home / "staging"
        self._description = home / "descriptions" / f"{brain_id}.txt"
        index_file = home / "index" / "py" / f"{brain_id}.sqlite"
        self._index_file = IndexFile(index_file, embedder.name if embedder else None)
        self._index: Index | None = None
        self._files_lock = SharedLock()
        self._index_lock = threading.Lock()
        self._opening = threading.Lock()
        self._reconciled = False
        self._deleted = False

    @property
    def description(self) -> str | None:
        with suppress(FileNotFoundError):
            return self._description.read_text(encoding="utf-8")
        return None

    def look(self, at: Callable[[Tree], T]) -> T:
        """What `at` makes of the files; no write happens meanwhile."""
        with self._files_lock.shared():
            self._refuse_deleted()
            return at(self._tree())

    def use(self, read: Callable[[Index], T]) -> T:
        """What `read` makes of the index; no write happens meanwhile."""
        self.open()
        with self._index_held() as index:
            return read(index)

    def counts(self) -> Counts:
        return self.use(Index.counts)

    def open(self) -> None:
        """Bring the index to what the files say, once. Raises UpstreamError."""
        if self._reconciled:
            return
        with self._opening:
            if not self._reconciled:
                self._reconcile()
                self._reconciled = True

    def ingest(self, documents: Sequence[NewDocument]) -> list[Stored]:
        """Store and index all of `documents`, or none of them.

        Raises:
            Problem: `conflict` where a path would be file and folder at once.
        """
        started = time.perf_counter()
        last = {document.path: number for number, document in enumerate(documents)}
        sidecars = [json.dumps(d.sidecar, ensure_ascii=False).encode() for d in documents]

        def stage(staged: Staged) -> None:
            for number, new in enumerate(documents):
                if last[new.path] == number:
                    with named(f"documents[{number}]"):
                        staged.store(new.path, Document(new.content, sidecars[number]))

        indexed = self.change(stage)
        took = (time.perf_counter() - started) * 1e3 / len(documents)
        return [
            Stored(
                path=new.path,
                chunks=len(indexed[new.path].chunks) if new.path in indexed else 0,
                bytes=len(new.content),
                took_ms=took,
            )
            for new in documents
        ]

    def change(
        self, stage: Callable[[Staged], None], reason: str | None = None
    ) -> Mapping[str, IndexedDocument]:
        """Carry out what `stage` asks for: all of it, or nothing.

        It is called again where, while the embedder was asked, another change came before.

        Returns:
            What was indexed, by path.

        Raises:
            Problem: whatever `stage` raises; UpstreamError where the embedder fails.
        """
        self.open()
        prepared: dict[str, _Prepared] = {}
        while True:
            with self._index_held() as index, self._files_lock.exclusive():
                tree = self._tree()
                staged = Staged(tree)
                stage(staged)
                wanted = {
                    path: document
                    for path, document in staged.after.items()
                    if document is not None and not is_hidden(path)
                }
                missing = {
                    path: document
                    for path, document in wanted.items()
                    if path not in prepared or prepared[path].document != document
                }
                if not missing:
                    indexed = {path: prepared[path].indexed for path in wanted}
                    self._commit(index, tree, staged, indexed)
                    self.hub.publish(staged.changes, reason)
                    return indexed
            done = prepare(missing, self.embedder)
            prepared |= {d.path: _Prepared(missing[d.path], d) for d in done}

    def _commit(
        self, index: Index, tree: Tree, staged: Staged, indexed: Mapping[str, IndexedDocument]
    ) -> None:
        if not staged.after:
            return
        with committed(tree, self._staging, staged.after):
            index.apply(
                [replace(d, stamp=tree.stamp(d.path)) for d in indexed.values()],
                removed=[path for path, document in staged.after.items() if document is None],
            )

    def _reconcile(self) -> None:
        with self._index_held() as index, self._files_lock.shared():
            found = differences(self._tree(), index.stamps())
            if found.gone:
                index.apply(removed=found.gone)
        for batch in batches(found.stale):
            with self._files_lock.shared():
                tree = self._tree()
                documents = {
                    item.path: Document(content, tree.sidecar(item.path))
                    for item in batch
                    if (content := tree.documents.read(item.path)) is not None
                }
            prepared = prepare(documents, self.embedder)
            stamps = {item.path: item.stamp for item in batch}
            with self._index_held() as index:
                index.apply([replace(d, stamp=stamps[d.path]) for d in prepared])

    def _tree(self) -> Tree:
        return Tree(self._documents, self._sidecars)

    @contextmanager
    def _index_held(self) -> Iterator[Index]:
        with self._index_lock:
            self._refuse_deleted()
            if self._index is None:
                self._index = self._index_file.open()
            yield self._index

    def _refuse_deleted(self) -> None:
        if self._deleted:
            raise Problem("not_found", f"no brain {self.id!r}")

    def close(self) -> None:
        with self._index_lock:
            self._close_index()
            self._index_file.release()

    def _close_index(self) -> None:
        if self._index is not None:
            self._index.close()
            self._index = None

    def delete(self) -> Path:
        """Make it unknown at once; what is left of it lies in the folder that is returned."""
        with self._index_lock, self._files_lock.exclusive():
            self._refuse_deleted()
            grave = grave_in(self._staging)
            for folder in (self._documents, self._sidecars):
                with suppress(FileNotFoundError):
                    folder.rename(grave / folder.parent.name)
            self._deleted = True
            self._close_index()
            self._index_file.remove()
            self._index_file.release()
            self._description.unlink(missing_ok=True)
        self.hub.end()
        return grave
