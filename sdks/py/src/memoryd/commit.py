"""Atomic changes to a brain's files."""

import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from memoryd.draft import Document
from memoryd.journal import Journal, has_journal, recover
from memoryd.paths import folders_of, parent
from memoryd.problems import Problem
from memoryd.tree import Root, Tree, sidecar_of

_STALE_SECONDS = 3600

_PREFIX = "py-"
"""Work folders of this kind of daemon; other kinds share the staging folder."""


@contextmanager
def commit_files(
    tree: Tree, staging: Path, documents: Mapping[str, Document | None]
) -> Iterator[None]:
    """Write `documents` (None: remove) on entry; undo all of it if the block raises.

    If anything fails, the writing or the block itself, the former files are restored. If the
    process is killed, `sweep` restores them at the next start.

    Raises:
        Problem: `conflict` if something other than a document, such as a link, is in the way.
    """
    work = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=staging))
    removable = True
    try:
        with Journal(work, staging.parent) as journal:
            try:
                _carry_out(tree, documents, _Mover(work, journal))
                yield
            except BaseException:
                removable = journal.undo()
                raise
            journal.finish()
        for path in (path for path, document in documents.items() if document is None):
            _prune(tree.documents, path)
            _prune(tree.sidecars, path)
    finally:
        if removable:
            shutil.rmtree(work, ignore_errors=True)


def trash_folder(staging: Path) -> Path:
    """Create a folder for deleted files; `sweep` removes it if its daemon is killed first."""
    return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}deleted-", dir=staging))


def sweep(staging: Path) -> None:
    """Undo and remove the work of killed daemons; the work of running ones is left alone."""
    for folder in staging.glob(f"{_PREFIX}*"):
        try:
            if has_journal(folder):
                removable = recover(folder, staging.parent)
            else:
                removable = time.time() - folder.stat().st_mtime > _STALE_SECONDS
        except FileNotFoundError:
            # Its daemon, or another sweep, removed it meanwhile.
            continue
        if removable:
            shutil.rmtree(folder, ignore_errors=True)


def _carry_out(tree: Tree, documents: Mapping[str, Document | None], mover: "_Mover") -> None:
    writes: list[tuple[Root, str, Path]] = []
    removals: list[Path] = []
    for path, document in documents.items():
        if document is None:
            if tree.documents.file(path) is not None:
                removals.append(tree.documents.folder / path)
        else:
            writes.append((tree.documents, path, mover.write_new(document.content)))
        former = tree.sidecar(path)
        sidecar = None if document is None else document.sidecar
        if sidecar is not None and sidecar != former:
            writes.append((tree.sidecars, sidecar_of(path), mover.write_new(sidecar)))
        elif sidecar is None and former is not None:
            removals.append(tree.sidecars.folder / sidecar_of(path))
    # Write before removing, so that a renamed document exists at every moment.
    mover.pending_removals = removals
    for root, path, new in writes:
        # Among the sidecars, anything in the way is an orphan and may go; among the documents it
        # may be somebody's file.
        mover.place(new, root.folder, path, overwrite=root is tree.sidecars)
    mover.set_aside_below()


class _Mover:
    """Moves files between their places and the work folder, and journals each step first."""

    def __init__(self, work: Path, journal: Journal) -> None:
        self._work = work
        self._journal = journal
        self._count = 0
        self._folders: set[Path] = set()
        """Folders known to exist."""
        self.pending_removals: list[Path] = []
        """Files to set aside: at the end, or as soon as they are in the way."""

    def _new_path(self) -> Path:
        self._count += 1
        return self._work / str(self._count)

    def write_new(self, content: bytes) -> Path:
        new = self._new_path()
        new.write_bytes(content)
        return new

    def set_aside_below(self, place: Path | None = None) -> None:
        """Set aside the pending removals at or below `place`; all of them if it is None."""
        remaining = []
        for target in self.pending_removals:
            if place is None or f"{target}/".startswith(f"{place}/"):
                self._set_aside(target)
            else:
                remaining.append(target)
        self.pending_removals = remaining

    def _set_aside(self, target: Path) -> None:
        old = self._new_path()
        self._journal.record_move(target, old)
        target.rename(old)

    def place(self, new: Path, root: Path, path: str, *, overwrite: bool) -> None:
        root.mkdir(parents=True, exist_ok=True)
        if root / parent(path) not in self._folders:
            for folder in folders_of(path):
                self._make_folder(root / folder, overwrite=overwrite)
        target = root / path
        if _is_folder(target):
            self._clear(target, overwrite=overwrite)
        old = self._new_path()
        self._journal.record_move(target, old, new)
        # A hard link, so that the document never disappears from its path.
        with suppress(FileNotFoundError):
            os.link(target, old, follow_symlinks=False)
        new.replace(target)

    def _make_folder(self, folder: Path, *, overwrite: bool) -> None:
        if folder in self._folders:
            return
        if not _is_folder(folder):
            if os.path.lexists(folder):
                self._clear(folder, overwrite=overwrite)
            self._journal.record_folder(folder)
            folder.mkdir()
        self._folders.add(folder)

    def _clear(self, place: Path, *, overwrite: bool) -> None:
        self.set_aside_below(place)
        if not os.path.lexists(place):
            return
        if not overwrite and not _is_empty(place):
            raise Problem("conflict", f"{place.name!r} is in the way and is not a document")
        self._set_aside(place)


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except FileNotFoundError:
        return False


def _is_empty(place: Path) -> bool:
    """Whether `place` is a folder that contains nothing but empty folders."""
    return _is_folder(place) and all(map(_is_folder, place.rglob("*")))


def _prune(root: Root, path: str) -> None:
    """Remove the folders above `path` that became empty."""
    for folder in reversed([*folders_of(path)]):
        if not root.is_folder(folder):
            return
        try:
            (root.folder / folder).rmdir()
        except OSError:
            return
