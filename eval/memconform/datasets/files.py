"""Reading benchmark files in pieces, compressed or not, with a digest of the content.

Such a file may be damaged or hostile: the size of its content and the memory for decompression are
bounded, and only regular files are opened.
"""

import codecs
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
    "read_text", "read_whole", "too_large", "unfit", "unreadable",
]  # fmt: skip

PIECE = 1 << 20
"""Bytes read at a time."""

_CHECK_FILE = "check that it is the file that was published"

MAX_BYTES = 16 << 30
"""Decompressed bytes of a file: six times LongMemEval M, the largest public file (2.7 GB)."""

MAX_RATIO = 200
"""Decompressed bytes per byte of the file. LongMemEval S has 5 as .xz; a decompression bomb has
1,000 (.gz) to 30,000 (.zst)."""
_RATIO_FROM = 64 << 20
"""Decompressed bytes above which the ratio is checked; less does no harm."""

MAX_WHOLE = 1 << 30
"""Bytes of a file that is read into memory: four times LongMemEval S as memini's JSON (277 MB)."""

MAX_LINE = 64 << 20
"""Bytes of a line, which is in memory too: the longest of WMB-100K has 551 bytes."""


_MAX_UNDIGESTED = 16 << 20
"""Bytes that may wait for the digest: waiting for each piece costs a tenth of the time."""


class PieceReader:
    """A stream of a file's bytes; `.gz`, `.xz` and `.zst` files are decompressed.

    A UTF-8 byte order mark, with which some editors begin a file, is skipped, but digested.

    Raises:
        UsageError: from any method, if it is not a regular file, or cannot be read or decompressed
            to its end (`dataset_unreadable`), or decompresses to too much (`dataset_too_large`).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        """Decompressed bytes read so far."""
        self._digest = hashlib.sha256()
        self._file = open_regular(path)
        self._is_packed = path.suffix in PACKED
        self._packed_size = os.fstat(self._file.fileno()).st_size
        self._unpacked = decompressed(self._file, path.suffix)
        # In a thread, in parallel with the parsing: it would take a seventh of the time otherwise.
        self._digesting = ThreadPoolExecutor(1)
        self._undigested: deque[tuple[Future[None], int]] = deque()
        # Likewise: decompressing LongMemEval S takes as long as parsing it.
        self._decompressing = ThreadPoolExecutor(1)
        self._ahead: Future[bytes] | None = None
        self._rest_of_piece = b""
        self._is_at_start = True

    def read(self, size: int = PIECE) -> bytes:
        """At most `size` of the next bytes, or a few more at the start; empty at the end."""
        if not self._is_at_start:
            return self._next(size)
        self._is_at_start = False
        piece = self._next(max(size, len(codecs.BOM_UTF8)))
        if not piece.startswith(codecs.BOM_UTF8):
            return piece
        return piece.removeprefix(codecs.BOM_UTF8) or self._next(size)

    def _next(self, size: int) -> bytes:
        try:
            piece = self._decompressed(size) if self._is_packed else self._unpacked.read(size)
        except (OSError, EOFError, lzma.LZMAError, zlib.error, ZstdError) as error:
            raise unreadable(self.path, error) from error
        self.size += len(piece)
        self._require_sensible_size()
        self._undigested.append((self._digesting.submit(self._digest.update, piece), len(piece)))
        # Zeros decompress faster than they are digested: pieces would pile up in memory.
        while sum(size for _, size in self._undigested) > _MAX_UNDIGESTED:
            self._undigested.popleft()[0].result()
        return piece

    def _decompressed(self, size: int) -> bytes:
        """The next bytes, while a thread decompresses the piece after them."""
        if not self._rest_of_piece:
            ahead = self._ahead or self._decompressing.submit(self._unpacked.read, PIECE)
            self._ahead = None
            self._rest_of_piece = ahead.result()
            if self._rest_of_piece:
                self._ahead = self._decompressing.submit(self._unpacked.read, PIECE)
        piece, self._rest_of_piece = self._rest_of_piece[:size], self._rest_of_piece[size:]
        return piece

    def rest(self, limit: int = MAX_WHOLE) -> bytes:
        """Read the remaining bytes.

        Raises:
            UsageError: if there are more than `limit` (`dataset_too_large`).
        """
        content = bytearray()
        while piece := self.read():
            content += piece
            if len(content) > limit:
                raise too_large(
                    self.path,
                    f"has more than {limit:,} bytes, too many for a format that is read into"
                    " memory",
                    "split it, or use a format that is read in pieces",
                )
        return bytes(content)

    @property
    def sha256(self) -> str:
        """Digest of the decompressed bytes read so far."""
        # There is one worker thread, so this runs after all pieces.
        return self._digesting.submit(self._digest.hexdigest).result()

    def _require_sensible_size(self) -> None:
        if self.size > MAX_BYTES:
            raise too_large(
                self.path,
                f"has more than {MAX_BYTES:,} bytes",
                _CHECK_FILE,
            )
        limit = max(_RATIO_FROM, MAX_RATIO * self._packed_size)
        if self._is_packed and self.size > limit:
            raise too_large(
                self.path,
                f"decompresses from {self._packed_size:,} bytes to more than {limit:,}, which no"
                " text does",
                f"{_CHECK_FILE}; if you made it yourself, decompress it first",
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._decompressing.shutdown()
        self._digesting.shutdown()
        self._file.close()


def open_regular(path: Path) -> IO[bytes]:
    """Open a regular file for reading.

    The type is checked before opening: opening a FIFO waits for a writer, and opening a device may
    have side effects.

    Raises:
        UsageError: if the file is missing, unreadable or not regular (`dataset_unreadable`).
    """
    try:
        _require_regular(path, path.stat().st_mode)
        # Non-blocking, in case the file has become a FIFO in between.
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
            hint="data is read more than once: write it to a file and give that",
        )


def read_whole(path: Path, limit: int = MAX_WHOLE) -> bytes:
    """The raw bytes of a regular file.

    Raises:
        UsageError: if it cannot be read (`dataset_unreadable`) or has more than `limit` bytes
            (`dataset_too_large`).
    """
    with open_regular(path) as file:
        try:
            content = file.read(limit + 1)
        except OSError as error:
            raise unreadable(path, error) from error
    if len(content) > limit:
        raise too_large(path, f"has more than {limit:,} bytes", "check that it is the right file")
    return content


def read_text(path: Path, limit: int = MAX_WHOLE) -> str:
    """The text of a regular file in UTF-8, without a byte order mark.

    Raises:
        UsageError: as `read_whole`.
        UnicodeDecodeError: if it is not UTF-8.
    """
    return read_whole(path, limit).decode("utf-8-sig")


def lines(source: PieceReader) -> Iterator[bytes]:
    """The lines of a file, without their line ends.

    Raises:
        UsageError: if a line is longer than `MAX_LINE` (`dataset_too_large`).
    """
    partial = b""
    number = 1
    while piece := source.read():
        *complete, partial = (partial + piece).split(b"\n")
        yield from complete
        number += len(complete)
        if len(partial) > MAX_LINE:
            raise line_too_long(source.path, number)
    if partial:
        yield partial


def line_at(path: Path, byte: int) -> int:
    """The line number of a byte offset in a file's decompressed content."""
    number = 1
    with PieceReader(path) as source:
        # `size` counts a byte order mark, as `byte` does.
        while source.size < byte and (piece := source.read()):
            start = source.size - len(piece)
            number += piece[: max(0, byte - start)].count(b"\n")
    return number


def unreadable(path: Path, error: Exception) -> UsageError:
    """The error to raise for a file that cannot be read."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return UsageError(f"{path}: {reason}", code="dataset_unreadable", hint="check the path")


def unfit(path: Path, reason: str, hint: str = _CHECK_FILE) -> UsageError:
    """The error to raise for a file with invalid content."""
    return UsageError(f"{path}: {reason}", code="dataset_invalid", hint=hint)


def too_large(path: Path, reason: str, hint: str) -> UsageError:
    """The error to raise for a file that is, or decompresses to, more than the limit."""
    return UsageError(f"{path} {reason}", code="dataset_too_large", hint=hint)


def line_too_long(path: Path, number: int) -> UsageError:
    """The error to raise for a line longer than `MAX_LINE`."""
    return too_large(
        path, f"has more than {MAX_LINE:,} bytes in line {number}", "write one JSON object a line"
    )
