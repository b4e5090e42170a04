"""Streaming the elements of a JSON array, or of JSON lines, from a file of any size."""

import codecs
import json
import re
from collections.abc import Iterator
from typing import cast

from memconform.contract.strict_json import DECODER, RepeatedKeyError, repeated_key_position
from memconform.contract.wire import JsonValue
from memconform.datasets.files import PIECE, PieceReader, line_at, unfit
from memconform.errors import UsageError

# Why not ijson: 3.6 (yajl2_c) reads LongMemEval S (257 MB) in 0.7 s of CPU time, this in 0.8, and
# holds 26 to 39 MiB, this 39 to 44. But it keeps the second of two equal keys, turns a lone
# surrogate into `?`, reads an object as an empty array, refuses integers above 64 bits, and names
# neither byte nor line; 60 kB of nested brackets take 2.1 GiB, because it builds a path a level.

_GAP = re.compile(r"[ \t\r\n]*")
_SCAN = DECODER.raw_decode
_LOOKAHEAD = 16
"""Characters, more than the longest escape: an error farther than that from the end of the text
cannot be due to missing input."""
_MAX_ELEMENT = 128 << 20
"""Characters of one element, which is held in memory: 24 times a haystack of LongMemEval M, enough
for 20 million tokens."""


def elements(source: PieceReader) -> Iterator[JsonValue]:
    """Yield the elements of a JSON file that is one array.

    Only one element and its text are in memory. The standard library's scanner gets as much text as
    the previous element took, and more if that was not enough.

    Raises:
        UsageError: naming line and byte, if the file is not a JSON array, repeats a key in an
            object, ends too early, or has an element that is too large for memory.
    """
    text = _Text(source)
    if text.next_sign() != "[":
        raise text.fault("is not a JSON array")
    yield from _array(text)


def array_or_lines(source: PieceReader) -> Iterator[JsonValue]:
    """Yield the elements of a JSON array, or the objects of a file of JSON lines.

    Dataset hubs export an array as lines.

    Raises:
        UsageError: as `elements`.
    """
    text = _Text(source)
    if text.next_sign() == "[":
        yield from _array(text)
        return
    while sign := text.next_sign():
        if sign != "{":
            raise text.fault("is neither a JSON array nor JSON lines")
        yield text.element()


def _array(text: "_Text") -> Iterator[JsonValue]:
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
            raise text.fault("ends too early" if not sign else "lacks a comma")
        text.at += 1
        if sign == "]":
            text.expect_end()
            return


class _Text:
    """The part of a file that is in memory, and the position in it."""

    def __init__(self, source: PieceReader) -> None:
        self._source = source
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._text = ""
        self._ended = False
        self._size = PIECE
        """Expected number of characters of the next element."""
        self.at = 0

    def element(self) -> JsonValue:
        """Parse the value at the current position."""
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
            except MemoryError as error:
                raise self.fault("does not fit in memory") from error
            except RepeatedKeyError as error:
                at = repeated_key_position(self._text, error.key, self.at)
                raise self.fault(str(error), at=at) from error
            except ValueError as error:
                raise self.fault(str(error)) from error
            else:
                if len(self._text) - end < _LOOKAHEAD and not self._ended:
                    # A number may continue, for example with an exponent.
                    self._grow()
                    continue
                self._size = max(PIECE, (end - self.at) * 5 // 4)
                self.at = end
                return cast("JsonValue", value)

    def _want_more(self, error: json.JSONDecodeError) -> None:
        unterminated = error.msg.startswith("Unterminated string")
        if self._ended:
            cut = unterminated or error.pos >= len(self._text)
            raise self.fault("ends too early" if cut else error.msg, at=error.pos) from error
        if error.pos < len(self._text) - _LOOKAHEAD and not unterminated:
            raise self.fault(error.msg, at=error.pos) from error
        if self._size >= _MAX_ELEMENT:
            raise self.fault(f"an element has more than {_MAX_ELEMENT:,} characters") from error
        self._size = min(self._size * 2, _MAX_ELEMENT)

    def next_sign(self) -> str:
        """Move to the next character that is not white space and return it; "" at the end."""
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
            raise self.fault("has data after the end of the array")

    def _grow(self) -> None:
        piece = self._source.read(max(PIECE, self._size - (len(self._text) - self.at)))
        self._ended = not piece
        try:
            more = self._decoder.decode(piece, final=self._ended)
        except UnicodeDecodeError as error:
            byte = self._source.size - len(error.object) + error.start
            raise unfit(self._source.path, f"is not UTF-8, at byte {byte}") from error
        self._text = self._text[self.at :] + more
        self.at = 0

    def fault(self, reason: str, at: int | None = None) -> UsageError:
        """The error to raise for invalid content, with its byte and line."""
        at = self.at if at is None else at
        undecoded = self._decoder.getstate()[0]
        byte = self._source.size - len(undecoded) - len(self._text[at:].encode())
        # Counted by reading again: counting lines while reading takes a quarter longer.
        line = line_at(self._source.path, byte)
        return unfit(self._source.path, f"{reason}, at byte {byte}, line {line}")
