"""Decompression of files as streams, in bounded memory."""

import gzip
import io
import lzma
import sys
from typing import IO, TYPE_CHECKING, cast

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ZstdError = zstd.ZstdError

PACKED = (".gz", ".xz", ".zst")
"""Suffixes of files that are decompressed as they are read."""

_WINDOW_LOG = 27
"""A window of 128 MiB for both: the strongest presets of xz (-9) and zstd (-19) need 64 and 8 MiB.
Without a limit, a file of a hundred bytes can demand 4 GiB."""
_XZ_OVERHEAD = 1 << 20
_PIECE = 1 << 20


def decompressed(file: IO[bytes], suffix: str) -> IO[bytes]:
    """The decompressed content of a file with one of the suffixes `PACKED`; others unchanged.

    Raises:
        OSError, EOFError, zlib.error, lzma.LZMAError, ZstdError: from reading, if the file is
            damaged, truncated, or demands more memory than `_WINDOW_LOG` allows.
    """
    match suffix:
        case ".gz":
            return cast("IO[bytes]", gzip.GzipFile(fileobj=file))
        case ".xz":
            return cast("IO[bytes]", io.BufferedReader(_XzStream(file), _PIECE))
        case ".zst":
            options: dict[int, int] = {zstd.DecompressionParameter.window_log_max: _WINDOW_LOG}
            return cast("IO[bytes]", zstd.ZstdFile(file, options=options))
    return file


class _XzStream(io.RawIOBase):
    """An .xz file; `lzma.open` has no memory limit."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decoder = _xz_decoder()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        with memoryview(buffer).cast("B") as target:
            content = self._next(len(target))
            target[: len(content)] = content
        return len(content)

    def _next(self, size: int) -> bytes:
        """Up to `size` of the next bytes; empty at the end."""
        while True:
            packed = b""
            if self._decoder.eof:
                # Another stream may follow after padding.
                packed = self._decoder.unused_data.lstrip(b"\0")
                while not packed:
                    piece = self._file.read(_PIECE)
                    if not piece:
                        return b""
                    packed = piece.lstrip(b"\0")
                self._decoder = _xz_decoder()
            elif self._decoder.needs_input:
                packed = self._file.read(_PIECE)
                if not packed:
                    raise EOFError("Compressed file ended before its end-of-stream marker")
            if content := self._decoder.decompress(packed, size):
                return content


def _xz_decoder() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(memlimit=(1 << _WINDOW_LOG) + _XZ_OVERHEAD)
