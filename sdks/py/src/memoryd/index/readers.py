"""Connections for reads of one index at the same time."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LIMIT = 4
"""Each one takes three file descriptors, for as long as the index is open."""


def connect(file: Path | None) -> sqlite3.Connection:
    return sqlite3.connect(
        file or ":memory:", isolation_level=None, check_same_thread=False, cached_statements=64
    )


class Readers:
    """Lends a connection to one thread at a time: threads that share one wait for each other."""

    def __init__(self, file: Path | None, writer: sqlite3.Connection) -> None:
        """`writer` is the only connection to an index in memory."""
        self._file = file
        self._free = threading.BoundedSemaphore(1 if file is None else _LIMIT)
        self._idle = [writer] if file is None else []

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        with self._free:
            try:
                database = self._idle.pop()
            except IndexError:
                database = connect(self._file)
            try:
                yield database
            finally:
                self._idle.append(database)

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()
