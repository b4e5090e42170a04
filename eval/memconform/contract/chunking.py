"""Which chunks a document is indexed as: core.chunk.front-matter and core.chunk.cut. Pure."""

import re
from collections.abc import Iterator

WHOLE = 131_072
"""Bytes of UTF-8 up to which a text stays one chunk."""
PIECE = 8_192
"""Most bytes of a chunk of a longer text."""

_FRONT_MATTER = re.compile(rb"---\r?\n(?:[A-Za-z0-9_.-]+:[^\n]*\n)*?---[ \t]*(?:\r?\n|\Z)")
_BLANK_LINE = re.compile(rb"\n(?=(\r?\n))")


def bodies(content: bytes) -> Iterator[bytes]:
    """The text that is indexed: all of it, or what is behind what may be front matter.

    Whether the values of front matter are well-formed, and so front matter at all, is left open.
    """
    yield content
    if (match := _FRONT_MATTER.match(content)) is not None:
        yield content[match.end() :]


def cut(text: bytes) -> list[bytes]:
    """The chunks of a text in UTF-8; joined they are the text."""
    if len(text) <= WHOLE:
        return [text] if text else []
    pieces = []
    start = 0
    while len(text) - start > PIECE:
        end = _end(text, start)
        pieces.append(text[start:end])
        start = end
    return [*pieces, text[start:]]


def _end(text: bytes, start: int) -> int:
    room = text[start : start + PIECE]
    blank = max((match.end(1) for match in _BLANK_LINE.finditer(room)), default=0)
    if blank:
        return start + blank
    if newline := room.rfind(b"\n") + 1:
        return start + newline
    end = start + PIECE
    while text[end] & 0xC0 == 0x80:
        end -= 1
    return end
