"""The index of a brain: in its file, or in memory while another daemon owns the file."""

import os
import sqlite3
from pathlib import Path

from memoryd.files.lock import lock_file
from memoryd.index.index import Index, made_by_name
from memoryd.index.salvage import salvage
from memoryd.index.seal import SIDE_FILES, break_seal, is_unusable, seal


class IndexFile:
    def __init__(self, file: Path, embedder: str | None) -> None:
        self._file = file
        self._embedder = embedder
        self._owner: int | None = None

    def open(self) -> Index:
        """Open the index; an empty one if the file is new, damaged or owned by another daemon."""
        if not self._owned():
            return Index(None, self._embedder)
        try:
            if not break_seal(self._file) and self._file.exists():
                salvage(self._file, made_by_name(self._embedder))
            return Index(self._file, self._embedder)
        except sqlite3.DatabaseError as error:
            if not is_unusable(error):
                raise
            # Beyond salvage: rebuild it from the documents.
            self.remove()
            return Index(self._file, self._embedder)

    def seal(self) -> None:
        """Seal the file of an index that has been closed."""
        if self._owner is not None:
            seal(self._file)

    def remove(self) -> None:
        if self._owned():
            for suffix in SIDE_FILES:
                Path(f"{self._file}{suffix}").unlink(missing_ok=True)

    def release(self) -> None:
        if self._owner is not None:
            os.close(self._owner)
            self._owner = None

    def _owned(self) -> bool:
        if self._owner is None:
            self._owner = lock_file(self._file.with_suffix(".lock"))
        return self._owner is not None
