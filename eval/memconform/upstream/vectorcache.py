"""Vectors on disk, by the model that made them and their text: to make them takes minutes."""

import hashlib
import math
import os
import sqlite3
import threading
import time
import zlib
from array import array
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeAlias, TypeVar

from platformdirs import user_cache_path

from memconform.errors import UsageError
from memconform.printing.logs import Logger

_log = Logger()

_BUSY_SECONDS = 30
"""Several processes share the file; each writes a batch at a time."""
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_TABLE = """
CREATE TABLE IF NOT EXISTS vectors (
  key BLOB PRIMARY KEY,       -- SHA-256 of the model and the text
  vector BLOB NOT NULL,       -- float32
  crc INTEGER NOT NULL        -- CRC-32 of both: SQLite does not see a bit that has turned
)
"""

Vector: TypeAlias = "array[float]"
_Result = TypeVar("_Result")


def cache_file() -> Path:
    """In `$MEMCONFORM_CACHE`, or in the user's cache folder."""
    given = os.environ.get("MEMCONFORM_CACHE")
    return (Path(given) if given else user_cache_path("memconform")) / "embeddings.sqlite3"


class VectorCache:
    """Only what is read back whole is used; a damaged file is put aside and begun anew.

    Threads and processes may share it. Its methods raise UsageError where the file cannot be used:
    without it a run would take hours in silence.
    """

    def __init__(self, made_by: str, dimensions: int) -> None:
        """`made_by` names the model and all that its vectors depend on."""
        self._made_by = made_by
        self._bytes = 4 * dimensions
        self._file = cache_file()
        self._lock = threading.Lock()
        self._db: sqlite3.Connection | None = None
        self._inode = 0

    def read(self, texts: Iterable[str]) -> dict[str, Vector]:
        """The vectors that are kept, by text."""
        keys = {text: self._key(text) for text in texts}

        def select(db: sqlite3.Connection) -> dict[str, Vector]:
            found = {}
            for text, key in keys.items():
                row = db.execute("SELECT vector, crc FROM vectors WHERE key = ?", (key,)).fetchone()
                if row is not None and (vector := self._sound(key, *row)) is not None:
                    found[text] = vector
            return found

        return self._on_file(select)

    def write(self, vectors: Mapping[str, Vector]) -> None:
        rows = []
        for text, vector in vectors.items():
            key, blob = self._key(text), vector.tobytes()
            rows.append((key, blob, zlib.crc32(key + blob)))

        def insert(db: sqlite3.Connection) -> None:
            with db:
                db.execute("BEGIN IMMEDIATE")
                db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)

        self._on_file(insert)

    def _key(self, text: str) -> bytes:
        return hashlib.sha256(f"{self._made_by}\0{text}".encode()).digest()

    def _sound(self, key: bytes, blob: bytes, crc: int) -> "Vector | None":
        if len(blob) == self._bytes and zlib.crc32(key + blob) == crc:
            vector = array("f", blob)
            if all(map(math.isfinite, vector)):
                return vector
        _log.warning("a kept vector is damaged: it is made again", file=str(self._file))
        return None

    def _on_file(self, work: Callable[[sqlite3.Connection], _Result]) -> _Result:
        with self._lock:
            try:
                try:
                    return work(self._opened())
                except sqlite3.DatabaseError as error:
                    if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _DAMAGE:
                        raise
                    self._put_aside(error)
                    return work(self._opened())
            except (OSError, sqlite3.Error) as error:
                raise UsageError(
                    f"{self._file}: {error}",
                    code="cache_unusable",
                    hint="vectors are kept there; set MEMCONFORM_CACHE to a folder that can be"
                    " written, or delete the file",
                ) from error

    def _opened(self) -> sqlite3.Connection:
        if self._db is None:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(
                self._file, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            self._inode = self._file.stat().st_ino
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.execute(_TABLE)
        return self._db

    def _put_aside(self, error: sqlite3.Error) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None
        if self._file.exists() and self._file.stat().st_ino != self._inode:
            return  # another process has done it
        for suffix in ("", "-wal", "-shm"):
            file = self._file.with_name(self._file.name + suffix)
            aside = file.with_name(f"{file.name}.damaged-{time.time():.0f}")
            if file.exists():
                file.rename(aside)
        _log.warning("damaged: put aside and begun anew", file=str(self._file), error=str(error))
