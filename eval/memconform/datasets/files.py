"""Files of benchmarks: compressed or not, read in pieces, with the digest of what was read.

Whoever made such a file may be wrong or hostile: what comes out of it is bounded, and so is the
memory that decompressing takes; nothing but a regular file is opened.
"""

import hashlib
import lzma
import os
import stat
import zlib
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import IO, Self

from memconform.datasets.compression import PACKED, ZstdError, decompressed
from memconform.errors import UsageError

__all__ = [
    "PACKED", "PIECE", "PieceReader", "line_at", "line_too_long", "lines", "open_regular",
    "read_whole", "too_large", "unfit", "unreadable",
]  # fmt: skip

PIECE = 1 << 20
"""Bytes that are read at a time."""

MAX_BYTES = 16 << 30
"""Of a file, decompressed: six times LongMemEval M, the largest public file (2.7 GB)."""

MAX_RATIO = 200
"""Decompressed bytes for each byte of the file. LongMemEval S has 5 as .xz; a bomb has 1,000 (.gz)
to 30,000 (.zst)."""
_RATIO_FROM = 64 << 20
"""Decompressed bytes from which the ratio counts: less than that harms nobody."""

MAX_WHOLE = 1 << 30
"""Of a file that is held in memory: four times LongMemEval S as memini's JSON (277 MB)."""

MAX_LINE = 64 << 20
"""Of a line, which is held in memory too: the longest of WMB-100K has 551 bytes."""


_MAX_UNDIGESTED = 16 << 20
"""Bytes that may wait for the digest: waiting for each piece costs a tenth of the time."""


class PieceReader:
    """The bytes of a file as they are once unpacked: `.gz`, `.xz` and `.zst` are.

    Raises UsageError where it is no regular file, cannot be read, cannot be unpacked to its end, or
    unpacks to more than is sensible.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        """Bytes so far, unpacked."""
        self._digest = hashlib.sha256()
        self._file = open_regular(path)
        self._is_packed = path.suffix in PACKED
        self._packed_size = os.fstat(self._file.fileno()).st_size
        self._unpacked = decompressed(self._file, path.suffix)
        # Beside what is done with the pieces: a seventh of the time otherwise.
        self._digesting = ThreadPoolExecutor(1)
        self._undigested: deque[tuple[Future[None], int]] = deque()

    def read(self, size: int = PIECE) -> bytes:
        """The next bytes; none at the end."""
        try:
            piece = self._unpacked.read(size)
        except (OSError, EOFError, lzma.LZMAError, zlib.error, ZstdError) as error:
            raise unreadable(self.path, error) from error
        self.size += len(piece)
        self._require_sensible_size()
        self._undigested.append((self._digesting.submit(self._digest.update, piece), len(piece)))
        # Zeros are decompressed faster than they are digested: pieces would pile up.
        while sum(size for _, size in self._undigested) > _MAX_UNDIGESTED:
            self._undigested.popleft()[0].result()
        return piece

    def rest(self, limit: int = MAX_WHOLE) -> bytes:
        """All that is left; raises UsageError where that is more than `limit` bytes."""
        content = bytearray()
        while piece := self.read():
            content += piece
            if len(content) > limit:
                raise too_large(
                    self.path,
                    f"has more than {limit:,} bytes, and is held in memory",
                    "split it, or use a format that is read in pieces",
                )
        return bytes(content)

    @property
    def sha256(self) -> str:
        """Of the bytes that were read, unpacked."""
        # One thread: behind all pieces.
        return self._digesting.submit(self._digest.hexdigest).result()

    def _require_sensible_size(self) -> None:
        if self.size > MAX_BYTES:
            raise too_large(
                self.path,
                f"has more than {MAX_BYTES:,} bytes",
                "is it the file that was published?",
            )
        limit = max(_RATIO_FROM, MAX_RATIO * self._packed_size)
        if self._is_packed and self.size > limit:
            raise too_large(
                self.path,
                f"unpacks from {self._packed_size:,} bytes to more than {limit:,}: no text does",
                "is it the file that was published? If you made it yourself, unpack it first",
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._digesting.shutdown()
        self._file.close()


def open_regular(path: Path) -> IO[bytes]:
    """Open a file for reading.

    Raises:
        UsageError: for what is not there or not a regular file. That is found out first: opening
            a FIFO waits for a writer, and opening a device may do something.
    """
    try:
        _require_regular(path, path.stat().st_mode)
        # Without waiting, in case it has become a FIFO since.
        return open(path, "rb", opener=_open_without_waiting)
    except OSError as error:
        raise unreadable(path, error) from error


def _open_without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def _require_regular(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise UsageError(
            f"{path} is {_KINDS.get(stat.S_IFMT(mode), 'special')}, not a regular file",
            code="dataset_unreadable",
            hint="data is read more than once: write it to a file, and give that",
        )


def read_whole(path: Path, limit: int = MAX_WHOLE) -> bytes:
    """The bytes of a regular file as they are.

    Raises:
        UsageError: where it cannot be read, or has more than `limit` bytes.
    """
    with open_regular(path) as file:
        try:
            content = file.read(limit + 1)
        except OSError as error:
            raise unreadable(path, error) from error
    if len(content) > limit:
        raise too_large(path, f"has more than {limit:,} bytes", "is it the right file?")
    return content


def lines(source: PieceReader) -> Iterator[bytes]:
    """The lines of a file, without their ends."""
    begun = b""
    number = 1
    while piece := source.read():
        *whole, begun = (begun + piece).split(b"\n")
        yield from whole
        number += len(whole)
        if len(begun) > MAX_LINE:
            raise line_too_long(source.path, number)
    if begun:
        yield begun


def line_at(path: Path, byte: int) -> int:
    """The number of the line that a byte of a file is in, unpacked."""
    number = 1
    with PieceReader(path) as source:
        while byte > 0 and (piece := source.read(min(PIECE, byte))):
            number += piece.count(b"\n")
            byte -= len(piece)
    return number


def unreadable(path: Path, error: Exception) -> UsageError:
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return UsageError(f"{path}: {why}", code="dataset_unreadable", hint="check the path")


def unfit(path: Path, why: str, hint: str = "is it the file that was published?") -> UsageError:
    """What is wrong with a file's content."""
    return UsageError(f"{path}: {why}", code="dataset_invalid", hint=hint)


def too_large(path: Path, why: str, hint: str) -> UsageError:
    """A file is, or unpacks to, more than is read."""
    return UsageError(f"{path} {why}", code="dataset_too_large", hint=hint)


def line_too_long(path: Path, number: int) -> UsageError:
    return too_large(
        path, f"has more than {MAX_LINE:,} bytes in line {number}", "write one JSON object a line"
    )
