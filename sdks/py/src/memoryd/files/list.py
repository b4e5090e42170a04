"""Listing of documents and the folders above them."""

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from posixpath import basename
from typing import Any

from memoryd.files.glob import compile_glob
from memoryd.files.tree import Tree
from memoryd.moment import rfc3339


@dataclass(frozen=True, slots=True)
class Listing:
    folder: str
    """The folder to list; empty for the brain itself."""
    recursive: bool
    hidden: bool
    """Whether to include hidden documents and folders."""
    glob: str | None

    def items(self, tree: Tree) -> list[dict[str, Any]]:
        """The documents and folders directly in the folder; if recursive, all documents below."""
        matches = compile_glob(self.glob) if self.glob is not None else None
        entries = tree.walk(self.folder) if self.recursive else tree.children(self.folder)
        selected = [
            (path, state) for path, state in entries if self._includes(basename(path), matches)
        ]
        return [_item(path, state) for path, state in sorted(selected, key=lambda k: k[0].encode())]

    def _includes(self, name: str, matches: Callable[[str], object] | None) -> bool:
        return (self.hidden or not name.startswith("_")) and (
            matches is None or bool(matches(name))
        )


def stat_of(tree: Tree, path: str) -> dict[str, Any] | None:
    """The item of a document or of a folder with documents; None for anything else."""
    state = tree.documents.status(path)
    if state is None:
        return None
    exists = stat.S_ISREG(state.st_mode) or tree.holds_documents(path)
    return _item(path, state) if exists else None


def _item(path: str, state: os.stat_result) -> dict[str, Any]:
    is_dir = stat.S_ISDIR(state.st_mode)
    size = 0 if is_dir else state.st_size
    return {"path": path, "size": size, "mtime": rfc3339(state.st_mtime), "is_dir": is_dir}
