"""A shared/exclusive lock for threads, and locks between processes."""

import fcntl
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class SharedLock:
    """A lock for many readers or one writer; a waiting writer takes precedence over new readers."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._readers = 0
        self._writing = False
        self._writers_waiting = 0

    @contextmanager
    def shared(self) -> Iterator[None]:
        with self._changed:
            while self._writing or self._writers_waiting:
                self._changed.wait()
            self._readers += 1
        try:
            yield
        finally:
            with self._changed:
                self._readers -= 1
                self._changed.notify_all()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        with self._changed:
            self._writers_waiting += 1
            while self._writing or self._readers:
                self._changed.wait()
            self._writers_waiting -= 1
            self._writing = True
        try:
            yield
        finally:
            with self._changed:
                self._writing = False
                self._changed.notify_all()


def lock_file(path: Path) -> int | None:
    """Lock a file; returns the descriptor that holds the lock, or None if it is locked already."""
    handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    return handle


def lock_database(path: Path, wait_s: float = 0.0) -> sqlite3.Connection | None:
    """Lock an empty SQLite database, with the locks that daemons in all languages share.

    Returns:
        The connection that holds the lock until it is closed or the process ends; None if another
        one holds it.

    Raises:
        OSError: if the file cannot be opened.
    """
    try:
        try:
            return _begin_exclusive(path, wait_s)
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_NOTADB:
                raise
        # Nobody holds the lock of a damaged file, and it holds no data.
        path.unlink(missing_ok=True)
        return _begin_exclusive(path, wait_s)
    except sqlite3.Error as error:
        raise OSError(f"{path}: {error}") from error


def _begin_exclusive(path: Path, wait_s: float) -> sqlite3.Connection | None:
    database = sqlite3.connect(
        path, timeout=wait_s, isolation_level=None, check_same_thread=False, cached_statements=0
    )
    try:
        database.execute("BEGIN EXCLUSIVE")
    except BaseException as error:
        database.close()
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
            return None
        raise
    return database
