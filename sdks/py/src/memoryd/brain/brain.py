"""A brain: an isolated corpus, which is a folder of documents and their search index."""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from memoryd.brain.draft import Draft
from memoryd.brain.ingest import NewDocument, ingestion
from memoryd.brain.layout import Layout
from memoryd.brain.reconcile import batches, differences
from memoryd.brain.source import prepare
from memoryd.embed.embed import Embedder
from memoryd.feed import Feed
from memoryd.files.lock import SharedLock
from memoryd.files.path import is_hidden
from memoryd.files.placement import place_files
from memoryd.files.regular import read_regular
from memoryd.files.staging import Staging
from memoryd.files.tree import Document, Tree
from memoryd.index.file import IndexFile
from memoryd.index.index import Counts, Index, IndexedDocument
from memoryd.problem import Problem

_log = logging.getLogger(__name__)

T = TypeVar("T")


class Brain:
    """Thread-safe. Only the lock `_opening` is held during calls to the embedder.

    So no read or search waits for the embeddings of another request. Where both are needed, the
    lock of the index is taken before that of the files.
    """

    def __init__(
        self, home: Path, brain_id: str, embedder: Embedder | None, staging: Staging
    ) -> None:
        self.id = brain_id
        self.embedder = embedder
        self.feed = Feed()
        layout = Layout.of(home, brain_id)
        self._documents = layout.documents
        self._sidecars = layout.sidecars
        self._staging = staging
        self._description = layout.description
        self._index_file = IndexFile(layout.index, embedder.name if embedder else None)
        self._index: Index | None = None
        self._files_lock = SharedLock()
        self._index_lock = SharedLock()
        self._opening = threading.Lock()
        self._reconciled: Index | None = None
        """The index, once it agrees with the files."""
        self._commits = 0
        """Changes of the documents, by which a draft is out of date."""
        self._deleted = False

    @property
    def description(self) -> str | None:
        content = read_regular(self._description)
        return None if content is None else content.decode("utf-8", "replace")

    def read_files(self, read: Callable[[Tree], T]) -> T:
        """Call `read` with the files, during which nothing is written.

        Raises:
            Problem: `not_found` if the brain was deleted.
        """
        with self._files_lock.shared():
            self._require_not_deleted()
            return read(self._tree())

    def query_index(self, read: Callable[[Index], T]) -> T:
        """Call `read` with the index, during which nothing is written; others may read it, too.

        Raises:
            Problem: `not_found` if the brain was deleted; UpstreamError if it cannot be opened.
        """
        index = self.open()
        with self._index_lock.shared():
            self._require_not_deleted()
            return read(index)

    def counts(self) -> Counts:
        return self.query_index(Index.counts)

    def open(self) -> Index:
        """The index, which is reconciled with the files the first time.

        Raises:
            Problem: `not_found` if the brain was deleted, `internal_error` if its index or its
                files cannot be read; UpstreamError if the embedder fails.
        """
        if self._reconciled is None:
            with self._opening:
                if self._reconciled is None:
                    try:
                        self._reconciled = self._reconcile()
                    except OSError as error:
                        _log.error("cannot open the brain %r", self.id, exc_info=error)
                        detail = f"the brain {self.id!r} cannot be opened: {error}"
                        raise Problem("internal_error", detail) from error
        return self._reconciled

    def ingest(self, documents: Sequence[NewDocument]) -> Mapping[str, IndexedDocument]:
        """Store and index all of `documents`, or none of them.

        Returns:
            Those that are indexed, by path.

        Raises:
            Problem: `conflict` if a path would be a file and a folder at once; UpstreamError if
                the embedder fails.
        """
        return self.change(ingestion(documents))

    def change(
        self, stage: Callable[[Draft], None], reason: str | None = None
    ) -> Mapping[str, IndexedDocument]:
        """Apply the changes that `stage` makes to a draft: all of them, or none.

        If another change commits during the call to the embedder, `stage` is called again with a
        new draft; only new content is embedded.

        Returns:
            The indexed documents, by path.

        Raises:
            Problem: whatever `stage` raises; UpstreamError if the embedder fails.
        """
        self.open()
        prepared: dict[str, Document] = {}
        indexed: dict[str, IndexedDocument] = {}
        draft, commits = None, 0
        while True:
            with self._locked_index() as index, self._files_lock.exclusive():
                if draft is None or commits != self._commits:
                    draft, commits = Draft(self._tree()), self._commits
                    stage(draft)
                visible = {
                    path: document
                    for path, document in draft.documents.items()
                    if document is not None and not is_hidden(path)
                }
                missing = {
                    path: document
                    for path, document in visible.items()
                    if prepared.get(path) != document
                }
                if not missing:
                    changed = {path: indexed[path] for path in visible}
                    self._commit(index, draft, changed)
                    self.feed.publish(draft.changes, reason)
                    return changed
            new = prepare(missing, self.embedder)
            prepared |= missing
            indexed |= {document.path: document for document in new}

    def _commit(self, index: Index, draft: Draft, indexed: Mapping[str, IndexedDocument]) -> None:
        if not draft.documents:
            return
        self._commits += 1
        tree = self._tree()
        applied = False
        try:
            with place_files(tree, self._staging, draft.documents):
                index.apply(
                    [replace(d, stamp=tree.stamp(d.path)) for d in indexed.values()],
                    removed=[path for path, new in draft.documents.items() if new is None],
                )
                applied = True
        except BaseException:
            # The files are restored, and the index is not: it is compared with them again.
            if applied:
                self._reconciled = None
            raise

    def _reconcile(self) -> Index:
        with self._locked_index() as index, self._files_lock.shared():
            stale, removed = differences(self._tree(), index.stamps())
            if removed:
                index.apply(removed=removed)
        for batch in batches(stale):
            with self._files_lock.shared():
                tree = self._tree()
                documents = {
                    item.path: Document(content, tree.sidecar(item.path))
                    for item in batch
                    if (content := tree.documents.read(item.path)) is not None
                }
            prepared = prepare(documents, self.embedder)
            stamps = {item.path: item.stamp for item in batch}
            with self._locked_index() as index:
                index.apply([replace(d, stamp=stamps[d.path]) for d in prepared])
        return index

    def _tree(self) -> Tree:
        return Tree(self._documents, self._sidecars)

    @contextmanager
    def _locked_index(self) -> Iterator[Index]:
        with self._index_lock.exclusive():
            self._require_not_deleted()
            if self._index is None:
                self._index = self._index_file.open()
            yield self._index

    def _require_not_deleted(self) -> None:
        if self._deleted:
            raise Problem("not_found", f"no brain {self.id!r}")

    def close(self) -> None:
        with self._index_lock.exclusive():
            if self._index is not None:
                self._index.close()
            self._index_file.release()

    def delete(self) -> Path:
        """Delete the brain at once; its files are left in the returned folder, for removal."""
        with self._index_lock.exclusive(), self._files_lock.exclusive():
            self._require_not_deleted()
            trash = self._staging.new_folder()
            # The documents first: without them there is no brain, whatever else is left.
            for folder in (self._documents, self._sidecars):
                with suppress(FileNotFoundError):
                    folder.rename(trash / folder.parent.name)
                self._deleted = True
            try:
                self._description.unlink(missing_ok=True)
                self._remove_index()
            except OSError as error:
                # The brain is gone; creating it again removes what is left.
                _log.warning("cannot remove all of the brain %r: %s", self.id, error)
        self.feed.end()
        return trash

    def discard(self) -> None:
        """Close a brain whose folder is gone, and remove its index."""
        with self._index_lock.exclusive():
            self._deleted = True
            self._remove_index()
        self.feed.end()

    def _remove_index(self) -> None:
        if self._index is not None:
            self._index.close()
        self._index_file.remove()
        self._index_file.release()
