"""A file of JSON lines that only grows, safe against the harness being killed."""

import os
import threading
from itertools import accumulate
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from memconform.errors import ResultsError
from memconform.storage.writing import json_bytes

_FSYNC_SECONDS = 0.5


class AppendOnly:
    """Each write reaches the kernel at once and the disk about half a second later.

    Raises:
        ResultsError: from every method, where the file is there already or cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = path.open("xb", buffering=0)
        except OSError as error:
            raise self.unwritable(error) from error
        self._offset = 0
        """Where the next write goes."""
        self._dirty = threading.Event()
        self._closing = threading.Event()
        self._sync_error: OSError | None = None
        # A thread, because an fsync of some milliseconds would show up in the latencies.
        self._syncer = threading.Thread(target=self._sync_often, name="journal-fsync", daemon=True)
        self._syncer.start()

    def append(self, *records: BaseModel | dict[str, Any]) -> list[int]:
        """Write the records, secrets masked, a line each; where each of them begins."""
        lines = [json_bytes(record) + b"\n" for record in records]
        data = b"".join(lines)
        try:
            if self._sync_error is not None:
                raise self._sync_error
            written = 0
            while written < len(data):
                written += self._file.write(data[written:])
        except OSError as error:
            raise self.unwritable(error) from error
        begins = accumulate(map(len, lines[:-1]), initial=self._offset)
        self._offset += len(data)
        self._dirty.set()
        return list(begins)

    def close(self, last: dict[str, Any]) -> None:
        """Append a last record and close; a file without it was cut short."""
        self._closing.set()
        self._syncer.join()
        try:
            self.append(last)
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self.unwritable(error) from error
        finally:
            self._file.close()

    def unwritable(self, error: OSError) -> ResultsError:
        return ResultsError(
            f"{self.path}: {error.strerror}",
            code="journal_unwritable",
            hint="check free space and permissions of the results folder; what was measured"
            f" so far is in {self.path}",
        )

    def _sync_often(self) -> None:
        while not self._closing.wait(_FSYNC_SECONDS):
            if self._dirty.is_set():
                self._dirty.clear()
                try:
                    os.fsync(self._file.fileno())
                except OSError as error:
                    self._sync_error = error
