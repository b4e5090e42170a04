"""Splitting a document's text into the chunks that are indexed and ranked."""

import hashlib
import re

WHOLE_LIMIT = 131_072
"""Size in UTF-8 bytes up to which a text is one chunk."""

WINDOW = 8_192
"""The maximal size, in UTF-8 bytes, of the chunks of a longer text."""

_BLANK_LINE = re.compile(rb"\n(?=(\r?\n))")
"""A lookahead, so that of "\\n\\n\\n" the second blank line is found too."""


def chunk(text: str) -> list[str]:
    """Split `text` into chunks whose concatenation is `text`; an empty text has none.

    A text over `WHOLE_LIMIT` is split after the last blank line inside each `WINDOW` bytes, else
    after the last newline, else at the last code point boundary.
    """
    data = text.encode()
    if len(data) <= WHOLE_LIMIT:
        return [text] if text else []
    chunks = []
    start = 0
    while len(data) - start > WINDOW:
        end = start + _cut(data[start : start + WINDOW + 1])
        chunks.append(data[start:end].decode())
        start = end
    chunks.append(data[start:].decode())
    return chunks


def _cut(window: bytes) -> int:
    """Where to split, in 1..WINDOW; `window` has one byte more than the chunk may have."""
    room = window[:WINDOW]
    blank_lines = [match.end(1) for match in _BLANK_LINE.finditer(room)]
    if blank_lines:
        return blank_lines[-1]
    newline = room.rfind(b"\n") + 1
    if newline:
        return newline
    end = WINDOW
    while window[end] & 0xC0 == 0x80:
        end -= 1
    return end


def document_id(path: str) -> str:
    """The first 32 hex digits of the path's SHA-256."""
    return hashlib.sha256(path.encode()).hexdigest()[:32]
