"""Files of benchmarks: compressed or not, read in pieces, with the digest of what was read."""

import codecs
import gzip
import hashlib
import json
import lzma
import re
import sys
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Self, cast

from memconform.contract.wire import JsonValue
from memconform.errors import UsageError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_PIECE = 1 << 20
_GAP = re.compile(r"[ \t\r\n]*")


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

    def read(self, size: int = _PIECE) -> bytes:
        """The next bytes; none at the end."""
        try:
            piece = self._file.read(size)
        except (OSError, EOFError, lzma.LZMAError, zlib.error, zstd.ZstdError) as error:
            raise unreadable(self.path, error) from error
        self._digest.update(piece)
        self.size += len(piece)
        return piece

    @property
    def sha256(self) -> str:
        """Of the bytes that were read, unpacked."""
        return self._digest.hexdigest()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


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


def told(error: Exception) -> str:
    """What is wrong with a value that has not the shape it should."""
    return f"no {error}" if isinstance(error, KeyError) else str(error)


def text(row: Mapping[str, Any], key: str) -> str:
    """The text at a key; raises KeyError or TypeError for what is none."""
    value = row[key]
    if not isinstance(value, str):
        raise TypeError(f"{key!r} wants a text, and is {_shown(value)}")
    return value


def texts(row: Mapping[str, Any], key: str) -> list[str]:
    """The texts at a key; raises KeyError or TypeError for what is no list of them."""
    value = row[key]
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise TypeError(f"{key!r} wants a list of texts, and is {_shown(value)}")
    return value


def answer(row: Mapping[str, Any], key: str) -> str:
    """The answer at a key, a text or a number; raises KeyError or TypeError for anything else."""
    value = row[key]
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TypeError(f"{key!r} wants a text or a number, and is {_shown(value)}")
    return str(value)


def _shown(value: object) -> str:
    return repr(value)[:60]


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


_SCAN = json.JSONDecoder(parse_constant=_refuse_constant).raw_decode
_SURE = 16
"""An error that stands further from the end than an escape is long is none of what is to come."""
_MOST = 512 << 20
"""Characters of one element; what is larger is no haystack but something that has no end."""


def elements(source: PieceReader) -> Iterator[JsonValue]:
    """The elements of the one array that a JSON file is, one at a time.

    Holds no more than one element and as much of the text. The standard library's scanner is given
    as much text as the element before took, and more where that was not enough.

    Raises:
        UsageError: naming the byte at which it is no such JSON, or ends too early.
    """
    text = _Text(source)
    if text.next_sign() != "[":
        raise text.fault("is no JSON array")
    text.at += 1
    if text.next_sign() == "]":
        text.at += 1
        text.expect_end()
        return
    while True:
        text.next_sign()
        yield text.element()
        sign = text.next_sign()
        if sign not in ("]", ","):
            raise text.fault("ends too early" if not sign else "wants a comma")
        text.at += 1
        if sign == "]":
            text.expect_end()
            return


class _Text:
    """The part of a file that is being looked at."""

    def __init__(self, source: PieceReader) -> None:
        self._source = source
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._text = ""
        self._ended = False
        self._size = _PIECE
        """Characters that the next element is expected to take."""
        self.at = 0

    def element(self) -> JsonValue:
        """The value that begins here."""
        while True:
            if len(self._text) - self.at < self._size and not self._ended:
                self._grow()
                continue
            try:
                value, end = _SCAN(self._text, self.at)
            except json.JSONDecodeError as error:
                self._want_more(error)
            except RecursionError as error:
                raise self.fault("nests too deeply") from error
            except ValueError as error:
                raise self.fault(str(error)) from error
            else:
                if len(self._text) - end < _SURE and not self._ended:
                    # A number may go on, by an exponent too.
                    self._grow()
                    continue
                self._size = max(_PIECE, (end - self.at) * 5 // 4)
                self.at = end
                return cast("JsonValue", value)

    def _want_more(self, error: json.JSONDecodeError) -> None:
        unterminated = error.msg.startswith("Unterminated string")
        if self._ended:
            cut = unterminated or error.pos >= len(self._text)
            raise self.fault("ends too early" if cut else error.msg, at=error.pos) from error
        if (error.pos < len(self._text) - _SURE and not unterminated) or self._size > _MOST:
            raise self.fault(error.msg, at=error.pos) from error
        self._size *= 2

    def next_sign(self) -> str:
        """The next character that is no space, which is then where this stands; "" at the end."""
        while True:
            match = _GAP.match(self._text, self.at)
            self.at = match.end() if match else self.at
            if self.at < len(self._text):
                return self._text[self.at]
            if self._ended:
                return ""
            self._grow()

    def expect_end(self) -> None:
        if self.next_sign():
            raise self.fault("has something behind its end")

    def _grow(self) -> None:
        wanted = max(_PIECE, self._size - (len(self._text) - self.at))
        piece = self._source.read(wanted)
        self._ended = not piece
        try:
            more = self._decoder.decode(piece, final=self._ended)
        except UnicodeDecodeError as error:
            byte = self._source.size - len(error.object) + error.start
            raise unfit(self._source.path, f"is not UTF-8, at byte {byte}") from error
        self._text = self._text[self.at :] + more
        self.at = 0

    def fault(self, why: str, at: int | None = None) -> UsageError:
        left = self._text[self.at if at is None else at :]
        undecoded = self._decoder.getstate()[0]
        byte = self._source.size - len(undecoded) - len(left.encode())
        return unfit(self._source.path, f"{why}, at byte {byte}")
