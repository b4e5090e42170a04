"""The files of a brain: its documents, and their sidecars in a parallel folder."""

import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from posixpath import dirname

from memoryd.files.path import folders_of, is_canonical
from memoryd.files.regular import is_folder, read_regular, status


@dataclass(frozen=True, slots=True)
class Document:
    content: bytes
    sidecar: bytes | None
    """What an ingest sent besides the content, as JSON."""


class Root:
    """A folder of files. Links are not followed, because they may lead anywhere.

    Create a new one for each use of the brain: it caches which folders are real. Without the cache,
    a batch of a thousand paths of a thousand folders each takes a minute.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # Not Path.__truediv__, which takes longer than the system to find a file.
        self._prefix = f"{folder}/"
        self._known_folders = {""}
        self._real = False

    def status(self, path: str) -> os.stat_result | None:
        """The `lstat` of the entry at `path`; None if it is missing or reached through a link."""
        state = status(self._prefix + path)
        if state is None:
            return None
        return state if self._is_real() and self.obstacle(path) is None else None

    def _is_real(self) -> bool:
        """Whether the root itself is a folder: nothing is below a link."""
        self._real = self._real or is_folder(self.folder)
        return self._real

    def file(self, path: str) -> os.stat_result | None:
        state = self.status(path)
        return state if state is not None and stat.S_ISREG(state.st_mode) else None

    def read(self, path: str) -> bytes | None:
        return None if self.file(path) is None else read_regular(self._prefix + path)

    def is_folder(self, path: str) -> bool:
        state = self.status(path)
        return state is not None and stat.S_ISDIR(state.st_mode)

    def obstacle(self, path: str) -> str | None:
        """The outermost parent of `path` that exists but is not a folder; None if there is none."""
        if dirname(path) in self._known_folders:
            return None
        for folder in folders_of(path):
            if folder in self._known_folders:
                continue
            state = status(self._prefix + folder)
            if state is None:
                return None
            if not stat.S_ISDIR(state.st_mode):
                return folder
            self._known_folders.add(folder)
        return None


class Tree:
    """The documents of a brain, and their sidecars in a parallel folder."""

    def __init__(self, documents: Path, sidecars: Path) -> None:
        self.documents = Root(documents)
        self.sidecars = Root(sidecars)

    def sidecar(self, path: str) -> bytes | None:
        """The bytes of the document's sidecar; None if it has none."""
        return self.sidecars.read(sidecar_of(path))

    def stamp(self, path: str, state: os.stat_result | None = None) -> str:
        """A string that changes with either file; the inode tells writes in one tick apart."""
        states = state or self.documents.file(path), self.sidecars.file(sidecar_of(path))
        return json.dumps([s and [s.st_size, s.st_mtime_ns, s.st_ino] for s in states])

    def walk(self, folder: str = "") -> Iterator[tuple[str, os.stat_result]]:
        """Every document below `folder`, by default the whole brain, in no order."""
        pending = [folder] if not folder or self.documents.is_folder(folder) else []
        while pending:
            for entry, path in self._entries(pending.pop()):
                if entry.is_dir(follow_symlinks=False):
                    pending.append(path)
                elif entry.is_file(follow_symlinks=False) and is_canonical(path):
                    yield path, entry.stat(follow_symlinks=False)

    def children(self, folder: str = "") -> Iterator[tuple[str, os.stat_result]]:
        """The documents, and folders with documents, directly in `folder`, in no order."""
        if folder and not self.documents.is_folder(folder):
            return
        for entry, path in self._entries(folder):
            is_file = entry.is_file(follow_symlinks=False) and is_canonical(path)
            if is_file or (entry.is_dir(follow_symlinks=False) and self.holds_documents(path)):
                yield path, entry.stat(follow_symlinks=False)

    def holds_documents(self, folder: str) -> bool:
        return next(self.walk(folder), None) is not None

    def _entries(self, folder: str) -> Iterator[tuple["os.DirEntry[str]", str]]:
        prefix = f"{folder}/" if folder else ""
        try:
            entries = os.scandir(self.documents.folder / folder)
        except FileNotFoundError:
            return
        with entries:
            for entry in entries:
                yield entry, prefix + entry.name


def sidecar_of(path: str) -> str:
    """The path of a document's sidecar in the folder of sidecars."""
    return f"{path}.json"
