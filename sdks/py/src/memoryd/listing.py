"""What lies in a brain, as the store tells it."""

import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from memoryd.changes import rfc3339
from memoryd.paths import base_name
from memoryd.tree import Tree

_NAME_LIMIT = 250
"""No base name has more characters."""


@dataclass(frozen=True, slots=True)
class Listing:
    folder: str
    """Empty for the brain itself."""
    recursive: bool
    hidden: bool
    """Whether hidden documents and folders are listed too."""
    glob: str | None

    def items(self, tree: Tree) -> list[dict[str, Any]]:
        """Documents and folders that lie directly in the folder; or all documents below it."""
        fits = _fitting(self.glob) if self.glob is not None else None
        found = tree.walk(self.folder) if self.recursive else tree.children(self.folder)
        kept = [(path, state) for path, state in found if self._keeps(base_name(path), fits)]
        return [_item(path, state) for path, state in sorted(kept, key=lambda k: k[0].encode())]

    def _keeps(self, name: str, fits: Callable[[str], object] | None) -> bool:
        return (self.hidden or not name.startswith("_")) and (fits is None or bool(fits(name)))


def stat_of(tree: Tree, path: str) -> dict[str, Any] | None:
    """Of a document, or of a folder that holds one."""
    state = tree.documents.status(path)
    if state is None:
        return None
    there = stat.S_ISREG(state.st_mode) or tree.holds_documents(path)
    return _item(path, state) if there else None


def _item(path: str, state: os.stat_result) -> dict[str, Any]:
    is_dir = stat.S_ISDIR(state.st_mode)
    size = 0 if is_dir else state.st_size
    return {"path": path, "size": size, "mtime": rfc3339(state.st_mtime), "is_dir": is_dir}


def _fitting(glob: str) -> Callable[[str], object]:
    """Whether a whole name fits: `*` is any number of characters, `?` is one."""
    first, *others = (re.escape(part).replace(r"\?", ".") for part in glob.split("*"))
    if len(glob.replace("*", "")) > _NAME_LIMIT:
        return lambda _: False
    pattern = first
    if others:
        *middle, last = others
        # Atomic, for the first place where a part fits is as good as any later one: a name is
        # read once for each part, and never again in another way.
        pattern += "".join(f"(?>.*?{part})" for part in middle if part) + f".*{last}"
    return re.compile(pattern, re.DOTALL).fullmatch
