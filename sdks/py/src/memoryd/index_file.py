"""The index of a brain: in its file, or in memory while another daemon owns the file."""

import os
import sqlite3
from pathlib import Path

from memoryd.index import Index
from memoryd.locks import lock_file


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
            return Index(self._file, self._embedder)
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:
            # Damaged, say by a power cut: rebuild it from the documents.
            self.remove()
            return Index(self._file, self._embedder)

    def remove(self) -> None:
        if self._owned():
            for suffix in ("", "-wal", "-shm"):
                Path(f"{self._file}{suffix}").unlink(missing_ok=True)

    def release(self) -> None:
        if self._owner is not None:
            os.close(self._owner)
            self._owner = None

    def _owned(self) -> bool:
        if self._owner is None:
            self._owner = lock_file(self._file.with_suffix(".lock"))
        return self._owner is not None
