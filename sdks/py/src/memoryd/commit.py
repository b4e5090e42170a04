"""Changes of a brain's files, carried out as one."""

import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from memoryd.journal import Journal, has_journal, recover
from memoryd.paths import folders_of, parent
from memoryd.problems import Problem
from memoryd.staged import Document
from memoryd.tree import Root, Tree, sidecar_of

_STALE_SECONDS = 3600

_PREFIX = "py-"
"""Daemons of other make have work of their own in the same folder."""


@contextmanager
def committed(tree: Tree, staging: Path, after: Mapping[str, Document | None]) -> Iterator[None]:
    """The files as `after` has them: all of them from here on, or, if anything fails, none.

    What fails may be the writing, or whatever the caller does with the files inside the block;
    files that were there before are then back.

    Raises:
        Problem: `conflict` where something that is no document, as a link, is in the way.
    """
    work = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=staging))
    served = True
    try:
        with Journal(work, staging.parent) as journal:
            try:
                _carry_out(tree, after, _Mover(work, journal))
                yield
            except BaseException:
                served = journal.undo()
                raise
            journal.done()
        for path in (path for path, document in after.items() if document is None):
            _prune(tree.documents, path)
            _prune(tree.sidecars, path)
    finally:
        if served:
            shutil.rmtree(work, ignore_errors=True)


def grave_in(staging: Path) -> Path:
    """A new folder for what is deleted; `sweep` removes it where its maker comes not to it."""
    return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}deleted-", dir=staging))


def sweep(staging: Path) -> None:
    """Undo and remove what a daemon that was killed has left, and nothing of one that lives."""
    for left in staging.glob(f"{_PREFIX}*"):
        try:
            if has_journal(left):
                served = recover(left, staging.parent)
            else:
                served = time.time() - left.stat().st_mtime > _STALE_SECONDS
        except FileNotFoundError:
            # Its daemon, or another that sweeps, was quicker.
            continue
        if served:
            shutil.rmtree(left, ignore_errors=True)


def _carry_out(tree: Tree, after: Mapping[str, Document | None], mover: "_Mover") -> None:
    news: list[tuple[Root, str, Path]] = []
    gone: list[Path] = []
    for path, document in after.items():
        if document is None:
            if tree.documents.file(path) is not None:
                gone.append(tree.documents.folder / path)
        else:
            news.append((tree.documents, path, mover.written(document.content)))
        before = tree.sidecar(path)
        sidecar = None if document is None else document.sidecar
        if sidecar is not None and sidecar != before:
            news.append((tree.sidecars, sidecar_of(path), mover.written(sidecar)))
        elif sidecar is None and before is not None:
            gone.append(tree.sidecars.folder / sidecar_of(path))
    # The new first: a document that is renamed is at no time without a place.
    mover.going = gone
    for root, path, new in news:
        # What no document's sidecar is has no right to its place; among the documents it is
        # somebody's.
        mover.place(new, root.folder, path, displacing=root is tree.sidecars)
    mover.put_aside_below()


class _Mover:
    """Moves files between their places and a folder of its own, noting it in the journal."""

    def __init__(self, work: Path, journal: Journal) -> None:
        self._work = work
        self._journal = journal
        self._count = 0
        self._folders: set[Path] = set()
        """Known to be folders."""
        self.going: list[Path] = []
        """To be put aside: at the end, or as soon as they are in the way."""

    def _fresh(self) -> Path:
        self._count += 1
        return self._work / str(self._count)

    def written(self, content: bytes) -> Path:
        new = self._fresh()
        new.write_bytes(content)
        return new

    def put_aside_below(self, place: Path | None = None) -> None:
        """Those of `going` that are at `place` or below it; all without one."""
        staying = []
        for target in self.going:
            if place is None or f"{target}/".startswith(f"{place}/"):
                self._put_aside(target)
            else:
                staying.append(target)
        self.going = staying

    def _put_aside(self, target: Path) -> None:
        old = self._fresh()
        self._journal.will_move(target, old)
        target.rename(old)

    def place(self, new: Path, root: Path, path: str, *, displacing: bool) -> None:
        root.mkdir(parents=True, exist_ok=True)
        if root / parent(path) not in self._folders:
            for folder in folders_of(path):
                self._make_folder(root / folder, displacing=displacing)
        target = root / path
        if _is_folder(target):
            self._make_way(target, displacing=displacing)
        old = self._fresh()
        self._journal.will_move(target, old, new)
        # A second name, so that the first is never without its document.
        with suppress(FileNotFoundError):
            os.link(target, old, follow_symlinks=False)
        new.replace(target)

    def _make_folder(self, folder: Path, *, displacing: bool) -> None:
        if folder in self._folders:
            return
        if not _is_folder(folder):
            if os.path.lexists(folder):
                self._make_way(folder, displacing=displacing)
            self._journal.will_make(folder)
            folder.mkdir()
        self._folders.add(folder)

    def _make_way(self, place: Path, *, displacing: bool) -> None:
        self.put_aside_below(place)
        if not os.path.lexists(place):
            return
        if not displacing and not _is_empty(place):
            raise Problem("conflict", f"{place.name!r} is there, and is no document")
        self._put_aside(place)


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except FileNotFoundError:
        return False


def _is_empty(place: Path) -> bool:
    """Whether there is nothing but folders, of which no one knows."""
    return _is_folder(place) and all(map(_is_folder, place.rglob("*")))


def _prune(root: Root, path: str) -> None:
    """Remove the folders of `path` that hold nothing any more."""
    for folder in reversed([*folders_of(path)]):
        if not root.is_folder(folder):
            return
        try:
            (root.folder / folder).rmdir()
        except OSError:
            return
