"""Undoes the content encoding of a body, piece by piece and never further than is asked for."""

import zlib

_GZIP = zlib.MAX_WBITS | 16


class BodyDecoder:
    """Decodes gzip, deflate and none; what it cannot decode it drops, and notes that."""

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
        """What was done to the body; empty where it is as it came."""
        encoding = ", ".join(self._names)
        if self._dropped:
            return f"{self._dropped} bytes cannot be decoded from {encoding} and are not kept"
        return f"decoded from {encoding}" if self._started else ""

    def decode(self, piece: bytes, limit: int) -> bytes:
        """At most `limit` bytes of what `piece` holds; nothing more is inflated."""
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
            # Several members make one body.
            self._inflate = zlib.decompressobj(_GZIP)
        first, self._started = not self._started, True
        try:
            return self._inflate.decompress(piece, limit)
        except zlib.error:
            if not first or self._names != ["deflate"]:
                raise
            # Many servers send it without zlib's header.
            self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)
            return self._inflate.decompress(piece, limit)

    def _rest(self) -> bytes:
        if self._inflate is None:
            return b""
        return self._inflate.unused_data if self._inflate.eof else self._inflate.unconsumed_tail
