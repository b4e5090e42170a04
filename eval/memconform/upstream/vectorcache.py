"""A disk cache of embedding vectors, keyed by model and text: computing them takes minutes."""

import hashlib
import math
import sqlite3
import threading
import time
import zlib
from array import array
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeAlias, TypeVar

from memconform.errors import UsageError
from memconform.printing.logs import Logger
from memconform.user_cache import cache_folder, use_write_ahead_log

_log = Logger()

_BUSY_SECONDS = 30
"""How long to wait for a lock: several processes share the file, each writing batch by batch."""
_DAMAGE_CODES = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_TABLE = """
CREATE TABLE IF NOT EXISTS vectors (
  key BLOB PRIMARY KEY,       -- SHA-256 of the model and the text
  vector BLOB NOT NULL,       -- float32
  crc INTEGER NOT NULL        -- CRC-32 of both: SQLite does not detect a flipped bit
)
"""

Vector: TypeAlias = "array[float]"
_Result = TypeVar("_Result")


def cache_file() -> Path:
    """The file that all processes of a user share."""
    return cache_folder() / "embeddings.sqlite3"


class VectorCache:
    """Caches vectors in one SQLite file that threads and processes may share.

    Entries are verified by checksum; a damaged file is moved aside and replaced by an empty one.
    Methods raise UsageError (`cache_unusable`) if the file cannot be used, because a run without
    the cache would silently take hours.
    """

    def __init__(self, fingerprint: str, dimensions: int) -> None:
        """`fingerprint` identifies the model and everything else that its vectors depend on."""
        self._fingerprint = fingerprint
        self._bytes = 4 * dimensions
        self._file = cache_file()
        self._lock = threading.Lock()
        self._db: sqlite3.Connection | None = None
        self._inode = 0

    def read(self, texts: Iterable[str]) -> dict[str, Vector]:
        """The cached vectors of `texts`, by text; texts that are not cached are missing."""
        keys = {text: self._key(text) for text in texts}

        def select(db: sqlite3.Connection) -> dict[str, Vector]:
            vectors = {}
            for text, key in keys.items():
                row = db.execute("SELECT vector, crc FROM vectors WHERE key = ?", (key,)).fetchone()
                if row is not None and (vector := self._verify(key, *row)) is not None:
                    vectors[text] = vector
            return vectors

        return self._transact(select)

    def write(self, vectors: Mapping[str, Vector]) -> None:
        """Store vectors by text, replacing existing ones."""
        rows = []
        for text, vector in vectors.items():
            key, blob = self._key(text), vector.tobytes()
            rows.append((key, blob, zlib.crc32(key + blob)))

        def insert(db: sqlite3.Connection) -> None:
            with db:
                db.execute("BEGIN IMMEDIATE")
                db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)

        self._transact(insert)

    def _key(self, text: str) -> bytes:
        return hashlib.sha256(f"{self._fingerprint}\0{text}".encode()).digest()

    def _verify(self, key: bytes, blob: bytes, crc: int) -> "Vector | None":
        if len(blob) == self._bytes and zlib.crc32(key + blob) == crc:
            vector = array("f", blob)
            if all(map(math.isfinite, vector)):
                return vector
        _log.warning("a cached vector is damaged and is recomputed", file=str(self._file))
        return None

    def _transact(self, work: Callable[[sqlite3.Connection], _Result]) -> _Result:
        with self._lock:
            try:
                try:
                    return work(self._connection())
                except sqlite3.DatabaseError as error:
                    if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _DAMAGE_CODES:
                        raise
                    self._move_aside(error)
                    return work(self._connection())
            except (OSError, sqlite3.Error) as error:
                raise UsageError(
                    f"{self._file}: {error}",
                    code="cache_unusable",
                    hint="this file caches embedding vectors; set MEMCONFORM_CACHE to a writable"
                    " folder, or delete the file",
                ) from error

    def _connection(self) -> sqlite3.Connection:
        if self._db is None:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(
                self._file, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            self._inode = self._file.stat().st_ino
            use_write_ahead_log(self._db, _BUSY_SECONDS)
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.execute(_TABLE)
        return self._db

    def _move_aside(self, error: sqlite3.Error) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None
        if self._file.exists() and self._file.stat().st_ino != self._inode:
            return  # another process has already replaced it
        for suffix in ("", "-wal", "-shm"):
            file = self._file.with_name(self._file.name + suffix)
            aside = file.with_name(f"{file.name}.damaged-{time.time():.0f}")
            if file.exists():
                file.rename(aside)
        _log.warning(
            "the vector cache is damaged: moved aside, starting a new one",
            file=str(self._file),
            error=str(error),
        )
