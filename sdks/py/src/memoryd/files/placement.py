"""Atomic changes to a brain's files."""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from posixpath import basename, dirname

from memoryd.files.journal import Journal
from memoryd.files.path import folders_of
from memoryd.files.regular import is_folder, is_regular, write_whole
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
    writes: list[tuple[Root, str, str]] = []
    removals: list[str] = []
    for path, document in documents.items():
        if document is None:
            if tree.documents.file(path) is not None:
                removals.append(f"{tree.documents.folder}/{path}")
        else:
            writes.append((tree.documents, path, placement.write_new(document.content)))
        former = tree.sidecar(path)
        sidecar = None if document is None else document.sidecar
        if sidecar is not None and sidecar != former:
            writes.append((tree.sidecars, sidecar_of(path), placement.write_new(sidecar)))
        elif sidecar is None and former is not None:
            removals.append(f"{tree.sidecars.folder}/{sidecar_of(path)}")
    # Write before removing, so that a renamed document exists at every moment.
    placement.pending_removals = removals
    for root, path, new in writes:
        # Among the sidecars, anything in the way is an orphan and may go; among the documents it
        # may be somebody's file.
        placement.put(new, root.folder, path, overwrite=root is tree.sidecars)
    placement.remove_below()


class _Placement:
    """Moves files between their places and the change's folder, and journals each step first.

    Paths are texts: to make a `Path` of one takes longer than the system needs to link a file.
    """

    def __init__(self, change: Path, journal: Journal, home: Path) -> None:
        self._change = change
        self._journal = journal
        self._home = home
        # Below a home such as `.`, paths do not begin with it.
        self._relative_from = len(str(home / "brains")) - len("brains")
        self._count = 0
        self._folders: set[str] = set()
        """Folders known to exist."""
        self._removed: list[str] = []
        self.pending_removals: list[str] = []
        """Files to remove: at the end, or as soon as they are in the way."""

    def _new_name(self) -> str:
        self._count += 1
        return str(self._count)

    def _relative(self, target: str) -> str:
        return target[self._relative_from :]

    def write_new(self, content: bytes) -> str:
        """Write a file in the change's folder, and return its name."""
        new = self._new_name()
        with FileIO(f"{self._change}/{new}", "x") as file:
            write_whole(file, content)
        return new

    def remove_below(self, place: str | None = None) -> None:
        """Carry out the pending removals at or below `place`; all of them if it is None."""
        remaining = []
        for target in self.pending_removals:
            if place is None or f"{target}/".startswith(f"{place}/"):
                self._remove(target)
            else:
                remaining.append(target)
        self.pending_removals = remaining

    def _remove(self, target: str) -> None:
        old, relative = self._new_name(), self._relative(target)
        self._journal.record(relative, old)
        Path(target).rename(self._change / old)
        self._removed.append(relative)

    def put(self, new: str, root: Path, path: str, *, overwrite: bool) -> None:
        """Put the file that `write_new` wrote at `path` below `root`."""
        if overwrite and not is_folder(root):
            # A link is removed, never what it leads to; a file is somebody's data, and mkdir fails.
            if not is_regular(root):
                root.unlink(missing_ok=True)
            root.mkdir()
        if f"{root}/{dirname(path)}" not in self._folders:
            for folder in folders_of(path):
                self._make_folder(f"{root}/{folder}", overwrite=overwrite)
        target = f"{root}/{path}"
        if is_folder(target):
            self._clear(target, overwrite=overwrite)
        old = self._new_name()
        self._journal.record(self._relative(target), old, new)
        # `new` itself stays, so that an undo recognizes the file.
        source = f"{self._change}/{new}"
        try:
            os.link(source, target)
        except FileExistsError:
            # A hard link, so that the document never disappears from its path.
            with suppress(FileNotFoundError):  # removed by hand meanwhile
                os.link(target, self._change / old, follow_symlinks=False)
            link = Path(f"{source}.link")
            link.hardlink_to(source)
            link.replace(target)

    def _make_folder(self, folder: str, *, overwrite: bool) -> None:
        if folder in self._folders:
            return
        if not is_folder(folder):
            if os.path.lexists(folder):
                self._clear(folder, overwrite=overwrite)
            Path(folder).mkdir()
        self._folders.add(folder)

    def _clear(self, place: str, *, overwrite: bool) -> None:
        self.remove_below(place)
        remove_empty_folders(Path(place))
        if not os.path.lexists(place):
            return
        if not overwrite:
            raise Problem("conflict", f"{basename(place)!r} is in the way and is not a document")
        self._remove(place)

    def remove_empty_folders(self) -> None:
        """Remove the folders that became empty; the change is committed by then."""
        for target in self._removed:
            remove_empty_above(self._home, target)
