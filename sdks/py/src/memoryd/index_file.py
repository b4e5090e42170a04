"""Where a brain's index lies: in a file of its own, or in memory while another daemon has it."""

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
        """What the file holds, or an empty index."""
        if not self._owned():
            return Index(None, self._embedder)
        try:
            return Index(self._file, self._embedder)
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:
            # Damaged, say by a power cut. The files are the truth and fill a new one.
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
