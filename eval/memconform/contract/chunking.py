"""Splits documents into chunks by the rules core.chunk.front-matter and core.chunk.cut. Pure."""

import re
from collections.abc import Iterator

WHOLE = 131_072
"""Largest text that stays one chunk, in bytes of UTF-8."""
PIECE = 8_192
"""Largest chunk of a longer text, in bytes."""

_FRONT_MATTER = re.compile(rb"---\r?\n(?:[A-Za-z0-9_.-]+:[^\n]*\n)*?---(?:\r?\n|\r?\Z)")
_BLANK_LINE = re.compile(rb"\n(?=(\r?\n))")


def bodies(content: bytes) -> Iterator[bytes]:
    """Yield every text that a daemon may index: the whole content, and the part after front matter.

    The second one is yielded only if the content begins with front matter. Daemons that know none
    index the whole.
    """
    yield content
    if (match := _FRONT_MATTER.match(content)) is not None:
        yield content[match.end() :]


def cut(text: bytes) -> list[bytes]:
    """Split a UTF-8 text into its chunks; joined, they equal the text."""
    if len(text) <= WHOLE:
        return [text] if text else []
    chunks = []
    start = 0
    while len(text) - start > PIECE:
        end = _end(text, start)
        chunks.append(text[start:end])
        start = end
    return [*chunks, text[start:]]


def _end(text: bytes, start: int) -> int:
    window = text[start : start + PIECE]
    blank = max((match.end(1) for match in _BLANK_LINE.finditer(window)), default=0)
    if blank:
        return start + blank
    if newline := window.rfind(b"\n") + 1:
        return start + newline
    end = start + PIECE
    while text[end] & 0xC0 == 0x80:
        end -= 1
    return end
