"""Encodings in which a secret may be written, and which do not occur in ordinary text."""

import base64
import json
import re
from bisect import bisect_right
from typing import Final

_DISTINCTIVE: Final = 4
"""Minimum length in bytes of what is recognized in hexadecimal, or within base64."""

_BASE64_END = rb"[A-Za-z0-9+/_-]?={0,2}"
"""The last base64 letter holds bits of the secret's last byte."""
_URLSAFE = bytes.maketrans(b"+/", b"-_")


def text_forms(secret: str) -> set[bytes]:
    """The secret as it is, and as JSON writes it, with quotes and other letters escaped."""
    plain = secret.encode("utf-8", "surrogatepass")
    in_json = json.dumps(secret, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")
    return {plain, in_json, json.dumps(secret)[1:-1].encode()}


def binary_patterns(secret: str) -> set[bytes]:
    """Patterns of encodings that do not occur in ordinary text; none for a single byte."""
    data = secret.encode("utf-8", "surrogatepass")
    if len(data) < 2:
        return set()
    # The outer zero byte of UTF-16 may be missing at the start or end of a line.
    wide = {secret.encode(e, "surrogatepass").strip(b"\0") for e in ("utf-16-le", "utf-16-be")}
    forms = {re.escape(form) + rb"\x00?" for form in wide}
    if len(data) >= _DISTINCTIVE:
        forms |= {data.hex().encode(), data.hex().upper().encode()}
    whole = base64.b64encode(data).rstrip(b"=")
    if len(data) < _DISTINCTIVE:
        # Too few inner letters to be distinctive.
        edge = rb"(?<![A-Za-z0-9+/_-])%s={0,2}(?![A-Za-z0-9+/_-])"
        return forms | {edge % re.escape(f) for f in (whole, whole.translate(_URLSAFE))}
    for offset in range(3):
        encoded = base64.b64encode(b"\0" * offset + data).rstrip(b"=")
        # Letters that also hold bits of the neighbouring bytes differ from text to text.
        inner = encoded[-(-offset * 8 // 6) : (offset + len(data)) * 8 // 6]
        forms |= {re.escape(f) + _BASE64_END for f in (inner, inner.translate(_URLSAFE))}
    return forms


_ESCAPED = re.compile(
    rb"\\+(?:u[dD][89abAB][0-9a-fA-F]{2}\\+u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}"
    rb"|x[0-9a-fA-F]{2}|[0-3][0-7]{2}|[\"'/bfnrt])|%[0-9a-fA-F]{2}"
)
_CONTROLS = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}


def _unescape(escape: bytes) -> bytes:
    """Decode an escape sequence of JSON, Python, printf or a URL."""
    code = escape.lstrip(b"\\%")
    if code[:1] == b"u":
        units = b"".join(re.findall(rb"u([0-9a-fA-F]{4})", escape))
        text = bytes.fromhex(units.decode()).decode("utf-16-be", "surrogatepass")
        return text.encode("utf-8", "surrogatepass")
    if code[:1] == b"x" or escape[:1] == b"%":
        return bytes.fromhex(code.removeprefix(b"x").decode())
    if len(code) == 3:
        return bytes([int(code, 8)])
    return _CONTROLS.get(code, code)


class Unescaped:
    """Bytes in which escape sequences are decoded, with the place of each byte in the original."""

    def __init__(self, data: bytes) -> None:
        self.data = bytearray()
        # Of each unescaped run and of each escape, in turn: the offset in `data`, and the first and
        # last offset in the original.
        self._starts: list[int] = []
        self._places: list[tuple[int, int]] = []
        end = 0
        for match in _ESCAPED.finditer(data):
            self._add(data[end : match.start()], end, match.start())
            self._add(_unescape(match[0]), match.start(), match.end())
            end = match.end()
        self._add(data[end:], end, len(data))

    def _add(self, piece: bytes, start: int, end: int) -> None:
        self._starts.append(len(self.data))
        self._places.append((start, end))
        self.data += piece

    @property
    def has_escapes(self) -> bool:
        """Whether the original had any escape sequence."""
        return len(self._starts) > 1

    def original_span(self, first: int, last: int) -> tuple[int, int]:
        """Where the bytes from `first` to before `last` are in the original, with all escapes."""
        return self._place(first)[0], self._place(last - 1)[1]

    def _place(self, index: int) -> tuple[int, int]:
        run = bisect_right(self._starts, index) - 1
        start, end = self._places[run]
        if run % 2:
            return start, end
        offset = start + index - self._starts[run]
        return offset, offset + 1
