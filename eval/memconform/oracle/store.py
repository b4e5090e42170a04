"""The documents of one brain, and the changes to them (documents.*, core.ingest.*). Pure."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from hashlib import sha256

from memconform.oracle.front_matter import Attributes, Indexed, index
from memconform.oracle.paths import base_name, conflicts, folders, is_hidden
from memconform.oracle.predictions import Rejection


@dataclass(frozen=True, slots=True)
class Document:
    """Bytes, and what an ingest gave them."""

    content: bytes
    attributes: Attributes = field(default_factory=Attributes)


@dataclass(frozen=True, slots=True)
class Change:
    """A committed mutation (events.change)."""

    kind: str
    path: str
    old_path: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk as a search ranks it."""

    path: str
    ordinal: int
    text: str
    document: Indexed

    @property
    def key(self) -> tuple[bytes, int]:
        """Decides between equal scores (core.search.order)."""
        return self.path.encode(), self.ordinal


def document_id(path: str) -> str:
    """The id of the document at a path (core.chunk.id)."""
    return sha256(path.encode()).hexdigest()[:32]


class RejectedError(Exception):
    """A change that a brain must reject."""

    def __init__(self, rejection: Rejection) -> None:
        super().__init__(rejection.rule)
        self.rejection = rejection


class Documents:
    """Documents by path. Each change sees the result of those before it."""

    def __init__(self) -> None:
        self._documents: dict[str, Document] = {}
        self.changes: list[Change] = []
        """All changes, in order."""

    def copy(self) -> "Documents":
        """A copy to try changes on."""
        other = Documents()
        other._documents = dict(self._documents)
        other.changes = list(self.changes)
        return other

    def get(self, path: str) -> Document | None:
        """The document at a path."""
        return self._documents.get(path)

    def store(self, path: str, document: Document, reason: str | None = None) -> None:
        """Store a document, replacing what was there.

        Raises:
            RejectedError: `conflict`.
        """
        if conflicts(path, self._documents):
            raise RejectedError(Rejection(409, "core.ingest.conflict"))
        kind = "updated" if path in self._documents else "created"
        self._documents[path] = document
        self.changes.append(Change(kind, path, reason=reason))

    def write(self, path: str, content: bytes, reason: str | None = None) -> None:
        """Replace the bytes; the attributes stay (documents.sidecar)."""
        former = self._documents.get(path)
        document = Document(content) if former is None else replace(former, content=content)
        self.store(path, document, reason)

    def append(self, path: str, content: bytes, reason: str | None = None) -> None:
        """Add bytes after the existing ones, or create the document."""
        former = self._documents.get(path)
        self.write(path, (former.content if former else b"") + content, reason)

    def delete(self, path: str, reason: str | None = None) -> None:
        """Remove a document and its attributes."""
        self._require(path)
        del self._documents[path]
        self.changes.append(Change("deleted", path, reason=reason))

    def rename(self, path: str, to: str, reason: str | None = None) -> None:
        """Move a document, replacing what was at `to`."""
        document = self._require(path)
        if path == to:
            return
        others = [other for other in self._documents if other != path]
        if conflicts(to, others):
            raise RejectedError(Rejection(409, "documents.conflict"))
        del self._documents[path]
        self._documents[to] = document
        self.changes.append(Change("renamed", to, path, reason))

    def _require(self, path: str) -> Document:
        if path not in self._documents:
            raise RejectedError(Rejection(404, "documents.missing"))
        return self._documents[path]

    def indexed(self, path: str) -> Indexed:
        """What the document at a path contributes to search."""
        document = self._documents[path]
        return index(b"" if is_hidden(path) else document.content, document.attributes)

    def chunks(self) -> list[Chunk]:
        """All chunks that can be found (core.ingest.hidden)."""
        return [
            Chunk(path, ordinal, text, indexed)
            for path in self._documents
            if not is_hidden(path)
            for indexed in (self.indexed(path),)
            for ordinal, text in enumerate(indexed.chunks)
        ]

    def visible(self) -> int:
        """How many documents count (core.brain.counts)."""
        return sum(not is_hidden(path) for path in self._documents)

    def folder_exists(self, path: str) -> bool:
        """Whether there is a document below it (documents.stat)."""
        return any(path in folders(other) for other in self._documents)

    def listing(
        self, folder: str, *, recursive: bool, hidden: bool, glob: str | None
    ) -> Iterator[tuple[str, int, bool]]:
        """Yield path, size and whether it is a folder, sorted (documents.list)."""
        prefix = f"{folder}/" if folder else ""
        below = [path for path in self._documents if path.startswith(prefix)]
        items = {path: False for path in below if recursive or "/" not in path[len(prefix) :]}
        if not recursive:
            items |= {
                prefix + path[len(prefix) :].partition("/")[0]: True
                for path in below
                if path not in items
            }
        matches = _glob(glob) if glob is not None else (lambda _: True)
        for path in sorted(items, key=str.encode):
            if (hidden or not is_hidden(path)) and matches(base_name(path)):
                is_folder = items[path]
                yield path, 0 if is_folder else len(self._documents[path].content), is_folder


def _glob(glob: str) -> Callable[[str], bool]:
    """`*` is any number of characters, `?` is one (documents.list.glob)."""
    parts = {"*": ".*", "?": "."}
    pattern = re.compile("".join(parts.get(c) or re.escape(c) for c in glob), re.DOTALL)
    return lambda name: pattern.fullmatch(name) is not None
