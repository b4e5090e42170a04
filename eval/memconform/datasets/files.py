"""Files of benchmarks: compressed or not, read in pieces, with the digest of what was read."""

import gzip
import hashlib
import lzma
import sys
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Self, cast

from memconform.errors import UsageError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PIECE = 1 << 20
"""Bytes that are read at a time."""

PACKED = (".gz", ".xz", ".zst")
"""Endings of names of files that are unpacked as they are read."""


class PieceReader:
    """The bytes of a file as they are once unpacked: `.gz`, `.xz` and `.zst` are.

    Raises UsageError where it cannot be read, or unpacked to its end.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        """Bytes so far, unpacked."""
        self._digest = hashlib.sha256()
        self._file = _opened(path)
        # Beside what is done with the pieces: a seventh of the time otherwise.
        self._digesting = ThreadPoolExecutor(1)

    def read(self, size: int = PIECE) -> bytes:
        """The next bytes; none at the end."""
        try:
            piece = self._file.read(size)
        except (OSError, EOFError, lzma.LZMAError, zlib.error, zstd.ZstdError) as error:
            raise unreadable(self.path, error) from error
        self._digesting.submit(self._digest.update, piece)
        self.size += len(piece)
        return piece

    def rest(self) -> bytes:
        """All that is left."""
        content = bytearray()
        while piece := self.read():
            content += piece
        return bytes(content)

    @property
    def sha256(self) -> str:
        """Of the bytes that were read, unpacked."""
        # One thread: behind all pieces.
        return self._digesting.submit(self._digest.hexdigest).result()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._digesting.shutdown()
        self._file.close()


def lines(source: PieceReader) -> Iterator[bytes]:
    """The lines of a file, without their ends."""
    begun = b""
    while piece := source.read():
        *whole, begun = (begun + piece).split(b"\n")
        yield from whole
    if begun:
        yield begun


def _opened(path: Path) -> IO[bytes]:
    try:
        match path.suffix:
            case ".gz":
                return cast("IO[bytes]", gzip.open(path, "rb"))
            case ".xz":
                return cast("IO[bytes]", lzma.open(path, "rb"))
            case ".zst":
                return cast("IO[bytes]", zstd.open(path, "rb"))
        return path.open("rb")
    except OSError as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: Exception) -> UsageError:
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return UsageError(f"{path}: {why}", code="dataset_unreadable", hint="check the path")


def unfit(path: Path, why: str, hint: str = "is it the file that was published?") -> UsageError:
    """What is wrong with a file's content."""
    return UsageError(f"{path}: {why}", code="dataset_invalid", hint=hint)
