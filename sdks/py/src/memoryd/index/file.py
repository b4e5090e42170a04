"""The file of an index, which one daemon at a time owns."""

import os
from pathlib import Path

from memoryd.files.lock import lock_file
from memoryd.index.index import Index
from memoryd.index.log import NEW_SUFFIX


class IndexFile:
    def __init__(self, file: Path, embedder: str | None) -> None:
        self._file = file
        self._embedder = embedder
        self._owner: int | None = None

    def open(self) -> Index:
        """Open the index; one in memory alone if another daemon owns the file.

        Raises:
            OSError: if the file cannot be read, or begun.
        """
        return Index(self._file if self._owned() else None, self._embedder)

    def remove(self) -> None:
        if self._owned():
            for suffix in ("", NEW_SUFFIX):
                Path(f"{self._file}{suffix}").unlink(missing_ok=True)

    def release(self) -> None:
        if self._owner is not None:
            os.close(self._owner)
            self._owner = None

    def _owned(self) -> bool:
        if self._owner is None:
            self._owner = lock_file(self._file.with_suffix(".lock"))
        return self._owner is not None
