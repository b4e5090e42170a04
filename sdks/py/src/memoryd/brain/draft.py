"""Pending changes to a brain's documents, layered over the files on disk."""

from collections import Counter
from collections.abc import Mapping

from memoryd.feed import Change
from memoryd.files.path import folders_of
from memoryd.files.tree import Document, Tree, sidecar_of
from memoryd.problem import Problem


class Draft:
    """A draft of changes; each operation sees the result of the previous ones.

    Nothing is written to disk: the brain commits `documents` and publishes `changes`. Operations
    raise Problem: `not_found` for a missing document, `conflict` if a path would be a file and a
    folder at once.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._documents: dict[str, Document | None] = {}
        self._folders: Counter[str] = Counter()
        """How many documents of `_documents` are below each folder."""
        self._pieces: dict[str, list[bytes]] = {}
        """Content to append to `_documents`: joined once, as joining each time is quadratic."""
        self.changes: list[Change] = []

    @property
    def documents(self) -> Mapping[str, Document | None]:
        """The document at each changed path; None for a deleted one."""
        for path in [*self._pieces]:
            self._join(path)
        return self._documents

    def store(self, path: str, document: Document) -> None:
        """Store `document` at `path`, replacing what is there."""
        self._require_no_conflict(path)
        self.changes.append(Change("updated" if self._has(path) else "created", path))
        self._set(path, document)

    def write(self, path: str, content: bytes) -> None:
        self.store(path, Document(content, self._sidecar(path)))

    def append(self, path: str, content: bytes) -> None:
        if self._documents.get(path) is None:
            self.store(path, self._get(path) or Document(b"", None))
        else:
            self.changes.append(Change("updated", path))
        self._pieces.setdefault(path, []).append(content)

    def delete(self, path: str) -> None:
        if not self._has(path):
            raise _not_found(path)
        self._set(path, None)
        self.changes.append(Change("deleted", path))

    def rename(self, path: str, to: str) -> None:
        document = self._get(path)
        if document is None:
            raise _not_found(path)
        if path == to:
            return
        # Remove first: `a` may be renamed to `a/b`.
        self._set(path, None)
        self._require_no_conflict(to)
        self._set(to, document)
        self.changes.append(Change("renamed", to, old_path=path))

    def _has(self, path: str) -> bool:
        if path in self._documents:
            return self._documents[path] is not None
        return self._tree.documents.file(path) is not None

    def _get(self, path: str) -> Document | None:
        self._join(path)
        if path in self._documents:
            return self._documents[path]
        content = self._tree.documents.read(path)
        return None if content is None else Document(content, self._tree.sidecar(path))

    def _join(self, path: str) -> None:
        document = self._documents.get(path)
        if document is not None and (pieces := self._pieces.pop(path, None)):
            content = b"".join([document.content, *pieces])
            self._documents[path] = Document(content, document.sidecar)

    def _sidecar(self, path: str) -> bytes | None:
        if path in self._documents:
            document = self._documents[path]
            return None if document is None else document.sidecar
        # What remains of a document that was removed from the disk is ignored.
        return self._tree.sidecar(path) if self._tree.documents.file(path) else None

    def _set(self, path: str, document: Document | None) -> None:
        present = (document is not None) - (self._documents.get(path) is not None)
        for folder in folders_of(path) if present else ():
            self._folders[folder] += present
        self._documents[path] = document
        self._pieces.pop(path, None)

    def _is_folder(self, path: str) -> bool:
        if self._folders[path] > 0:
            return True
        return any(below not in self._documents for below, _ in self._tree.walk(path))

    def _require_no_conflict(self, path: str) -> None:
        for target in (path, sidecar_of(path)):
            if self._is_folder(target):
                raise Problem("conflict", f"{path!r}: {target!r} is a folder")
        obstacle = self._tree.documents.obstacle(path)
        if obstacle is not None and obstacle not in self._documents:
            raise Problem("conflict", f"{path!r}: {obstacle!r} is not a folder")
        for folder in folders_of(path):
            if self._documents.get(folder) is not None:
                raise Problem("conflict", f"{path!r}: {folder!r} is a document")
            owner = folder.removesuffix(".json")
            if owner != folder and self._has(owner):
                raise Problem("conflict", f"{path!r}: {folder!r} is the sidecar of a document")


def _not_found(path: str) -> Problem:
    return Problem("not_found", f"no document {path!r}")
