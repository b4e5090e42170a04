"""Atomic changes to a brain's files."""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from memoryd.files.journal import Journal
from memoryd.files.path import folders_of, parent
from memoryd.files.regular import is_folder, is_regular
from memoryd.files.staging import Staging
from memoryd.files.tree import Document, Root, Tree, sidecar_of
from memoryd.files.undo import remove_empty_above, remove_empty_folders, undo
from memoryd.problem import Problem


@contextmanager
def place_files(
    tree: Tree, staging: Staging, documents: Mapping[str, Document | None]
) -> Iterator[None]:
    """Write `documents` (None: remove) on entry; undo all of it if the block raises.

    If anything fails, the writing or the block itself, the former files are restored. If the
    process is killed, the next start of a daemon restores them.

    Raises:
        Problem: `conflict` if something other than a document, such as a link, is in the way.
    """
    change = staging.new_folder()
    removable = True
    try:
        with Journal(change) as journal:
            placement = _Placement(change, journal, staging.home)
            try:
                _carry_out(tree, documents, placement)
                yield
                journal.end()
            except BaseException:
                removable = undo(journal.steps, change, staging.home)
                if removable:
                    journal.end()
                raise
        placement.remove_empty_folders()
    finally:
        if removable:
            shutil.rmtree(change, ignore_errors=True)


def _carry_out(
    tree: Tree, documents: Mapping[str, Document | None], placement: "_Placement"
) -> None:
    writes: list[tuple[Root, str, Path]] = []
    removals: list[Path] = []
    for path, document in documents.items():
        if document is None:
            if tree.documents.file(path) is not None:
                removals.append(tree.documents.folder / path)
        else:
            writes.append((tree.documents, path, placement.write_new(document.content)))
        former = tree.sidecar(path)
        sidecar = None if document is None else document.sidecar
        if sidecar is not None and sidecar != former:
            writes.append((tree.sidecars, sidecar_of(path), placement.write_new(sidecar)))
        elif sidecar is None and former is not None:
            removals.append(tree.sidecars.folder / sidecar_of(path))
    # Write before removing, so that a renamed document exists at every moment.
    placement.pending_removals = removals
    for root, path, new in writes:
        # Among the sidecars, anything in the way is an orphan and may go; among the documents it
        # may be somebody's file.
        placement.put(new, root.folder, path, overwrite=root is tree.sidecars)
    placement.remove_below()


class _Placement:
    """Moves files between their places and the change's folder, and journals each step first."""

    def __init__(self, change: Path, journal: Journal, home: Path) -> None:
        self._change = change
        self._journal = journal
        self._home = home
        self._count = 0
        self._folders: set[Path] = set()
        """Folders known to exist."""
        self._removed: list[str] = []
        self.pending_removals: list[Path] = []
        """Files to remove: at the end, or as soon as they are in the way."""

    def _new_path(self) -> Path:
        self._count += 1
        return self._change / str(self._count)

    def _relative(self, target: Path) -> str:
        return target.relative_to(self._home).as_posix()

    def write_new(self, content: bytes) -> Path:
        new = self._new_path()
        new.write_bytes(content)
        return new

    def remove_below(self, place: Path | None = None) -> None:
        """Carry out the pending removals at or below `place`; all of them if it is None."""
        remaining = []
        for target in self.pending_removals:
            if place is None or f"{target}/".startswith(f"{place}/"):
                self._remove(target)
            else:
                remaining.append(target)
        self.pending_removals = remaining

    def _remove(self, target: Path) -> None:
        old = self._new_path()
        self._journal.record(self._relative(target), old.name)
        target.rename(old)
        self._removed.append(self._relative(target))

    def put(self, new: Path, root: Path, path: str, *, overwrite: bool) -> None:
        if overwrite and not is_folder(root):
            # A link is removed, never what it leads to; a file is somebody's data, and mkdir fails.
            if not is_regular(root):
                root.unlink(missing_ok=True)
            root.mkdir()
        if root / parent(path) not in self._folders:
            for folder in folders_of(path):
                self._make_folder(root / folder, overwrite=overwrite)
        target = root / path
        if is_folder(target):
            self._clear(target, overwrite=overwrite)
        old = self._new_path()
        self._journal.record(self._relative(target), old.name, new.name)
        # A hard link, so that the document never disappears from its path.
        with suppress(FileNotFoundError):
            os.link(target, old, follow_symlinks=False)
        # `new` itself stays, so that an undo recognizes the file.
        link = new.with_suffix(".link")
        os.link(new, link)
        link.replace(target)

    def _make_folder(self, folder: Path, *, overwrite: bool) -> None:
        if folder in self._folders:
            return
        if not is_folder(folder):
            if os.path.lexists(folder):
                self._clear(folder, overwrite=overwrite)
            folder.mkdir()
        self._folders.add(folder)

    def _clear(self, place: Path, *, overwrite: bool) -> None:
        self.remove_below(place)
        remove_empty_folders(place)
        if not os.path.lexists(place):
            return
        if not overwrite:
            raise Problem("conflict", f"{place.name!r} is in the way and is not a document")
        self._remove(place)

    def remove_empty_folders(self) -> None:
        """Remove the folders that became empty; the change is committed by then."""
        for target in self._removed:
            remove_empty_above(self._home, target)
