"""Decodes the content encoding of a body, piece by piece, up to a limit."""

import zlib

_GZIP = zlib.MAX_WBITS | 16


class BodyDecoder:
    """Decodes gzip, deflate and identity; drops what it cannot decode and says so in `note`."""

    def __init__(self, content_encoding: str = "") -> None:
        names = [name.strip().lower() for name in content_encoding.split(",")]
        self._names = [name for name in names if name not in ("", "identity")]
        self._inflate: zlib._Decompress | None = None
        self._started = False
        self._failed = len(self._names) > 1
        self._dropped = 0
        match self._names:
            case ["gzip" | "x-gzip"]:
                self._inflate = zlib.decompressobj(_GZIP)
            case ["deflate"]:
                self._inflate = zlib.decompressobj()
            case [_]:
                self._failed = True

    @property
    def note(self) -> str:
        """How the decoded body differs from the received one; empty if it does not."""
        encoding = ", ".join(self._names)
        if self._dropped:
            return f"{self._dropped} bytes could not be decoded from {encoding} and were dropped"
        return f"decoded from {encoding}" if self._started else ""

    def decode(self, piece: bytes, limit: int) -> bytes:
        """Decode `piece` to at most `limit` bytes; inflate nothing beyond them."""
        if not self._names:
            return piece[:limit]
        decoded = bytearray()
        while piece and len(decoded) < limit and not self._failed:
            try:
                decoded += self._next(piece, limit - len(decoded))
            except zlib.error:
                self._failed = True
                break
            piece = self._rest()
        if self._failed:
            self._dropped += len(piece)
        return bytes(decoded)

    def _next(self, piece: bytes, limit: int) -> bytes:
        if self._inflate is None:
            return b""
        if self._inflate.eof:
            # A gzip body may have several members.
            self._inflate = zlib.decompressobj(_GZIP)
        first, self._started = not self._started, True
        try:
            return self._inflate.decompress(piece, limit)
        except zlib.error:
            if not first or self._names != ["deflate"]:
                raise
            # Many servers send deflate without zlib's header.
            self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)
            return self._inflate.decompress(piece, limit)

    def _rest(self) -> bytes:
        if self._inflate is None:
            return b""
        return self._inflate.unused_data if self._inflate.eof else self._inflate.unconsumed_tail
