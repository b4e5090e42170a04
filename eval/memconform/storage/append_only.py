"""Append-only files of JSON lines that survive a killed harness."""

import fcntl
import json
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from memconform.errors import ResultsError
from memconform.storage.sink import json_bytes, unwritable

_FSYNC_SECONDS = 0.5
_FOOTER = b'{"stage": "footer"'


class AppendOnly:
    """An append-only file of JSON lines, open for writing.

    Each write reaches the kernel at once and the disk about half a second later.

    Raises:
        ResultsError: from any method, if the file already exists or cannot be written
            (`journal_unwritable`).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = path.open("xb", buffering=0)
        except OSError as error:
            raise self.unwritable(error) from error
        self._offset = 0
        """Byte offset of the next write."""
        self._dirty = threading.Event()
        self._closing = threading.Event()
        self._sync_error: OSError | None = None
        # In a thread, because an fsync takes some milliseconds and would show up in the latencies.
        self._syncer = threading.Thread(
            target=self._sync_periodically, name="journal-fsync", daemon=True
        )
        self._syncer.start()

    def append(self, *records: BaseModel | dict[str, Any]) -> list[int]:
        """Write one line per record, secrets masked, and return the byte offset of each line."""
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
        offsets = accumulate(map(len, lines[:-1]), initial=self._offset)
        self._offset += len(data)
        self._dirty.set()
        return list(offsets)

    def close(self, last: dict[str, Any]) -> None:
        """Append a final record and close the file; a file without that record was cut short."""
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
        """The error to raise for a failed write."""
        return ResultsError(
            f"{self.path}: {error.strerror}",
            code="journal_unwritable",
            hint="check free space and permissions of the results folder; all measurements"
            f" so far are in {self.path}",
        )

    def _sync_periodically(self) -> None:
        while not self._closing.wait(_FSYNC_SECONDS):
            if self._dirty.is_set():
                self._dirty.clear()
                try:
                    os.fsync(self._file.fileno())
                except OSError as error:
                    self._sync_error = error


def whole_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the byte offset and the content of each line before the footer, the header first.

    A last line without a line end is left out: the program was killed while writing it.

    Raises:
        OSError: if the file cannot be read.
    """
    offset = 0
    with path.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n") or line.startswith(_FOOTER):
                return
            yield offset, line
            offset += len(line)


def append_lines(path: Path, *records: BaseModel | dict[str, Any]) -> None:
    """Append one line per record, secrets masked, to a file that may exist; synced on return.

    A last line that is cut short is removed first: its writer was killed.

    Raises:
        ResultsError: if it cannot be written (`results_unwritable`).
    """
    data = b"".join(json_bytes(record) + b"\n" for record in records)
    try:
        with path.open("a+b") as file:
            # Some file systems have no locks; two people then take turns themselves.
            with suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            *_, last = file.read().split(b"\n")
            if is_cut(last):
                file.truncate(file.tell() - len(last))
            elif last:
                file.write(b"\n")
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise unwritable(path, error) from error


def is_cut(line: bytes) -> bool:
    """Whether a last line, without its end, is not even JSON; empty ones are not cut."""
    try:
        json.loads(line or b"0")
    except (ValueError, RecursionError):
        return True
    return False
