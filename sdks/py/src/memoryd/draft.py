"""The documents of a brain as they will be: those on disk, and changes on top of them."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from memoryd.changes import Change
from memoryd.paths import folders_of
from memoryd.problems import Problem
from memoryd.tree import Tree, sidecar_of


@dataclass(frozen=True, slots=True)
class Document:
    content: bytes
    sidecar: bytes | None
    """What an ingest gave beside it, as JSON."""


class Staged:
    """Each operation sees what those before it have made, and raises Problem where it is refused.

    Nothing is written: the brain carries out `after` at once, and tells `changes`.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._after: dict[str, Document | None] = {}
        self._folders: Counter[str] = Counter()
        """How many documents of `_after` each folder holds."""
        self._pieces: dict[str, list[bytes]] = {}
        """What `_after` lacks of each document: joined once, however often it was appended to."""
        self.changes: list[Change] = []

    @property
    def after(self) -> Mapping[str, Document | None]:
        """What will be at each path that was touched; None where nothing will be."""
        for path in [*self._pieces]:
            self._join(path)
        return self._after

    def store(self, path: str, document: Document) -> None:
        """Put `document` at `path`, over what is there."""
        self._refuse_conflict(path)
        self.changes.append(Change("updated" if self._has(path) else "created", path))
        self._set(path, document)

    def write(self, path: str, content: bytes) -> None:
        self.store(path, Document(content, self._sidecar(path)))

    def append(self, path: str, content: bytes) -> None:
        if self._after.get(path) is None:
            self.store(path, self._get(path) or Document(b"", None))
        else:
            self.changes.append(Change("updated", path))
        self._pieces.setdefault(path, []).append(content)

    def delete(self, path: str) -> None:
        if not self._has(path):
            raise _missing(path)
        self._set(path, None)
        self.changes.append(Change("deleted", path))

    def rename(self, path: str, to: str) -> None:
        document = self._get(path)
        if document is None:
            raise _missing(path)
        if path == to:
            return
        # First, for `a` may become `a/b`.
        self._set(path, None)
        self._refuse_conflict(to)
        self._set(to, document)
        self.changes.append(Change("renamed", to, old_path=path))

    def _has(self, path: str) -> bool:
        if path in self._after:
            return self._after[path] is not None
        return self._tree.documents.file(path) is not None

    def _get(self, path: str) -> Document | None:
        self._join(path)
        if path in self._after:
            return self._after[path]
        content = self._tree.documents.read(path)
        return None if content is None else Document(content, self._tree.sidecar(path))

    def _join(self, path: str) -> None:
        document = self._after.get(path)
        if document is not None and (pieces := self._pieces.pop(path, None)):
            content = b"".join([document.content, *pieces])
            self._after[path] = Document(content, document.sidecar)

    def _sidecar(self, path: str) -> bytes | None:
        if path in self._after:
            document = self._after[path]
            return None if document is None else document.sidecar
        # What a document that somebody removed from the disk has left is no other's.
        return self._tree.sidecar(path) if self._tree.documents.file(path) else None

    def _set(self, path: str, document: Document | None) -> None:
        present = (document is not None) - (self._after.get(path) is not None)
        for folder in folders_of(path) if present else ():
            self._folders[folder] += present
        self._after[path] = document
        self._pieces.pop(path, None)

    def _is_folder(self, path: str) -> bool:
        if self._folders[path] > 0:
            return True
        return any(below not in self._after for below, _ in self._tree.walk(path))

    def _refuse_conflict(self, path: str) -> None:
        for place in (path, sidecar_of(path)):
            if self._is_folder(place):
                raise Problem("conflict", f"{path!r}: {place!r} is a folder")
        obstacle = self._tree.documents.obstacle(path)
        if obstacle is not None and obstacle not in self._after:
            raise Problem("conflict", f"{path!r}: {obstacle!r} is no folder")
        for folder in folders_of(path):
            if self._after.get(folder) is not None:
                raise Problem("conflict", f"{path!r}: {folder!r} is a document")
            beside = folder.removesuffix(".json")
            if beside != folder and self._has(beside):
                raise Problem("conflict", f"{path!r}: {folder!r} is the sidecar of a document")


def _missing(path: str) -> Problem:
    return Problem("not_found", f"no document {path!r}")
