"""A brain's files as they lie on disk, read without following links."""

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from memoryd.paths import folders_of, is_canonical, parent


class Root:
    """One folder with files below it. What is reached through a link is not there: it may lie
    anywhere.

    Made anew for each use of the brain, for it remembers which folders are no links. To ask the
    disk each time takes a minute for a batch of a thousand paths of a thousand folders each.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._real = {""}

    def status(self, path: str) -> os.stat_result | None:
        """Of the file, folder, or whatever else lies at `path`."""
        try:
            state = (self.folder / path).lstat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return state if self.obstacle(path) is None else None

    def file(self, path: str) -> os.stat_result | None:
        state = self.status(path)
        return state if state is not None and stat.S_ISREG(state.st_mode) else None

    def read(self, path: str) -> bytes | None:
        return None if self.file(path) is None else (self.folder / path).read_bytes()

    def is_folder(self, path: str) -> bool:
        state = self.status(path)
        return state is not None and stat.S_ISDIR(state.st_mode)

    def obstacle(self, path: str) -> str | None:
        """The outermost of the folders that `path` wants which is there, and is no folder."""
        if parent(path) in self._real:
            return None
        for folder in folders_of(path):
            if folder in self._real:
                continue
            try:
                state = (self.folder / folder).lstat()
            except FileNotFoundError:
                return None
            if not stat.S_ISDIR(state.st_mode):
                return folder
            self._real.add(folder)
        return None


class Tree:
    """Documents, and in a second folder of the same shape their sidecars."""

    def __init__(self, documents: Path, sidecars: Path) -> None:
        self.documents = Root(documents)
        self.sidecars = Root(sidecars)

    def sidecar(self, path: str) -> bytes | None:
        """What lies beside the document, as it was written."""
        return self.sidecars.read(sidecar_of(path))

    def stamp(self, path: str, state: os.stat_result | None = None) -> str:
        """What changes when one of the two files does; the inode tells two writes in one tick."""
        states = state or self.documents.file(path), self.sidecars.file(sidecar_of(path))
        return json.dumps([s and [s.st_size, s.st_mtime_ns, s.st_ino] for s in states])

    def walk(self, folder: str = "") -> Iterator[tuple[str, os.stat_result]]:
        """Every document below `folder`, the whole brain without one, in no order."""
        pending = [folder] if not folder or self.documents.is_folder(folder) else []
        while pending:
            for entry, path in self._entries(pending.pop()):
                if entry.is_dir(follow_symlinks=False):
                    pending.append(path)
                elif entry.is_file(follow_symlinks=False) and is_canonical(path):
                    yield path, entry.stat(follow_symlinks=False)

    def children(self, folder: str = "") -> Iterator[tuple[str, os.stat_result]]:
        """The documents and folders that lie directly in `folder`, in no order."""
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
    """Where the sidecar of the document `path` lies, among the sidecars."""
    return f"{path}.json"
