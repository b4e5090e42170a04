"""The log of an index: the changes that made it, each with a checksum.

A write that a kill cuts off, and whatever else damages the file, costs the records that it touches:
they are missing when the log is read, and their documents are indexed again.
"""

import json
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from io import FileIO
from pathlib import Path
from struct import Struct
from typing import BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic_core import from_json, to_json

from memoryd.files.regular import write_whole

_FORMAT = 3
"""Changes when the logs of older daemons can no longer be used."""

NEW_SUFFIX = ".new"
"""Of a file that is to replace a log."""

MARK = b"\0rec"
"""Begins each record; JSON contains no NUL."""

# A record is MARK and the checksum of the rest, the sizes of JSON and of vectors, JSON, vectors.
_HEAD = Struct("<4sI")
_SIZES = Struct("<II")

_PIECE = 2**16


class Record(NamedTuple):
    """A document as it is indexed."""

    path: str
    stamp: str
    title: str | None
    tags: list[str]
    session: str | None
    metadata: str
    """JSON, in which numbers are as they were written."""
    chunks: list[str]
    vectors: npt.NDArray[np.float32] | None
    """A row for each chunk; None without an embedder or without a chunk."""


class Removal(NamedTuple):
    """Says that there is no document at a path any more."""

    path: str


Change = Record | Removal


class Log:
    def __init__(self, file: Path, embedder: str | None) -> None:
        """Open a log, or begin one; one of another format or embedder is emptied."""
        self.records = 0
        self.damaged = False
        self.tolerated = 0
        """Bytes that a rewrite could not save, so that it is not tried again at each change."""
        self._path = file
        self._embedder = embedder
        self._header = f"memoryd {_FORMAT} {json.dumps(embedder)}\n".encode()
        # Unbuffered, so that a write has failed or is done.
        self._file = FileIO(os.open(file, os.O_RDWR | os.O_CREAT, 0o666), "r+")
        try:
            self.size = self._file.seek(0, os.SEEK_END)
            self._file.seek(0)
            if self._file.read(len(self._header)) != self._header:
                self.size = self._file.truncate(0)
                self._write(self._header)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._file.close()

    def append(self, changes: Sequence[Change]) -> list[int]:
        """Write all of `changes`, and return their sizes; nothing is changed if that fails."""
        encoded = [_encode(change) for change in changes]
        self._write(b"".join(encoded))
        self.records += len(changes)
        return [len(each) for each in encoded]

    def _write(self, content: bytes) -> None:
        # Over what a write may have left that failed, and could not be removed.
        self._file.seek(self.size)
        try:
            write_whole(self._file, content)
        except OSError:
            with suppress(OSError):
                self._file.truncate(self.size)
            raise
        self.size += len(content)

    def read(self) -> Iterator[tuple[Change, int]]:
        """The changes whose records are intact, in order, with their sizes."""
        with self._path.open("rb", buffering=16 * _PIECE) as file:
            start = file.seek(len(self._header))
            while start < self.size:
                change = _read_record(file, self.size - start)
                if change is None:
                    self.damaged = True
                    _seek_mark(file, start + 1)
                else:
                    self.records += 1
                    yield change, file.tell() - start
                start = file.tell()

    def rewritten(self, changes: Iterable[Change]) -> "Log":
        """Replace the log, which is closed, by one of `changes`.

        Raises:
            OSError: if it cannot be written; then this log stays as it is.
        """
        file = Path(f"{self._path}{NEW_SUFFIX}")
        file.unlink(missing_ok=True)
        with ExitStack() as undo:
            undo.callback(file.unlink, missing_ok=True)
            fresh = Log(file, self._embedder)
            undo.callback(fresh.close)
            for change in changes:
                fresh.append([change])
            file.rename(self._path)
            undo.pop_all()
        fresh._path = self._path
        self.close()
        return fresh


def _encode(change: Change) -> bytes:
    fields, vectors = change._asdict(), b""
    if isinstance(change, Record):
        del fields["vectors"]
        if change.vectors is not None:
            vectors = change.vectors.astype("<f4").tobytes()
    encoded = to_json(fields)
    rest = b"".join((_SIZES.pack(len(encoded), len(vectors)), encoded, vectors))
    return _HEAD.pack(MARK, zlib.crc32(rest)) + rest


def _read_record(file: BinaryIO, available: int) -> Change | None:
    """The next record, of at most `available` bytes; None if it is damaged."""
    start = _HEAD.size + _SIZES.size
    head = file.read(start)
    if len(head) < start:
        return None
    mark, checksum = _HEAD.unpack_from(head)
    json_size, vectors_size = _SIZES.unpack_from(head, _HEAD.size)
    size = json_size + vectors_size
    if mark != MARK or start + size > available:
        return None
    content = file.read(size)
    if zlib.crc32(content, zlib.crc32(head[_HEAD.size :])) != checksum:
        return None
    fields = from_json(content[:json_size])
    if fields.keys() == {*Removal._fields}:
        return Removal(**fields)
    vectors = None
    if vectors_size:
        vectors = np.frombuffer(content, "<f4", offset=json_size).reshape(len(fields["chunks"]), -1)
    return Record(**fields, vectors=vectors)


def _seek_mark(file: BinaryIO, start: int) -> None:
    """Go to the next mark, at `start` or after it, or to the end."""
    file.seek(start)
    while len(piece := file.read(_PIECE)) >= len(MARK):
        place = piece.find(MARK)
        # A mark may begin in the last bytes of the piece.
        start += place if place >= 0 else len(piece) - len(MARK) + 1
        file.seek(start)
        if place >= 0:
            return
