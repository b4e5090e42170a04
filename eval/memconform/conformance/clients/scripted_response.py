"""Writes the responses of client cases, byte by byte, with what happens in between."""

import asyncio
import json
import re
import sys
import time
import zlib
from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from memconform.conformance.clients.case import Item, Response, Wire
from memconform.conformance.clients.seen_request import SeenRequest
from memconform.conformance.clients.wire import encode_item, expected_result, line_ends

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

SILENCE_S = 15.0
"""How long the daemon waits for a client to give up, which has limits far below it."""
_DATE = re.compile(r"\{date:([^}]+)\}")
"""In a header: a date that is soon, in this format."""
_SOON_S = 3
_OFFERED = ("gzip", "deflate", "zstd")
"""Encodings that are used for clients which offer them."""
_WRITE_BYTES = 1 << 16
_KEPT_WRITES = 200
_KEPT_BYTES = 2_000
"""As much of a response is shown."""


class Progress(Protocol):
    """What the client has reported of the current call."""

    async def reported(self, events: int) -> None:
        """Wait until the client has reported so many events."""


class Connection(Protocol):
    """What a response needs to know of its connection and its daemon."""

    writer: asyncio.StreamWriter

    @property
    def wire(self) -> Wire:
        """Whose streams the daemon sends."""
        ...

    @property
    def progress(self) -> Progress:
        """What the client has reported of the current call."""
        ...

    @property
    def other_origin(self) -> str:
        """The origin to which a redirect may lead."""
        ...

    async def until_ended(self, seen: SeenRequest, seconds: float) -> None:
        """Wait until the client has ended the connection, at most for `seconds`."""


class _Encoder:
    """Encodes the writes of a body, each so that it can be decoded at once."""

    def __init__(self, encoding: str | None) -> None:
        bits = {"gzip": 31, "deflate": 15}.get(encoding or "")
        self._deflate = None if bits is None else zlib.compressobj(wbits=bits)
        self._zstd = zstd.ZstdCompressor() if encoding == "zstd" else None
        self._is_garbled = encoding == "nonsense"

    def write(self, data: bytes) -> bytes:
        if self._deflate is not None:
            return self._deflate.compress(data) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        if self._zstd is not None:
            return self._zstd.compress(data, zstd.ZstdCompressor.FLUSH_BLOCK)
        # An encoding that nobody can decode: whoever ignores it must not read the answer.
        return bytes(byte ^ 0x55 for byte in data) if self._is_garbled else data

    def end(self) -> bytes:
        if self._zstd is not None:
            return self._zstd.flush()
        return b"" if self._deflate is None else self._deflate.flush()


class _EndedError(Exception):
    """The response has ended before its last part, as the case says."""


class ScriptedResponse:
    """Writes one response.

    Args:
        connection: that on which the request came.
        seen: what is seen of the request.
        response: what is written.
    """

    def __init__(self, connection: Connection, seen: SeenRequest, response: Response) -> None:
        self._connection = connection
        self._writer = connection.writer
        self._seen = seen
        self._response = response
        self._framing = response.framing
        encoding = response.encoding
        if encoding in _OFFERED and encoding not in (seen.header("accept-encoding") or ""):
            encoding, seen.is_unoffered = None, True
        self._encoding = encoding
        self._encoder = _Encoder(encoding)

    async def send(self) -> None:
        """Write all of it, or as much as the case says.

        Raises:
            ConnectionError: if the connection has ended, as the case says or by the client.
        """
        response = self._response
        if response.delay_ms is not None:
            await self._connection.until_ended(self._seen, response.delay_ms / 1e3)
            if self._seen.ended.is_set():
                raise ConnectionAbortedError
        for status in response.informational:
            self._send(f"HTTP/1.1 {status} Informational\r\nx-note: early\r\n\r\n".encode())
        body = None if response.is_stream else self._whole_body()
        if body is not None and self._framing == "chunked":
            self._framing = "length"
        if body is None and self._framing == "length":
            body = b"".join([chunk async for chunk in self._chunks(only_bytes=True)])
        if body is not None:
            body = self._encoder.write(body) + self._encoder.end()
        head = self._head(None if body is None else len(body))
        for piece in _cut_each(head, 1 if response.cut_head else len(head)):
            self._send(piece)
            await self._writer.drain()
        try:
            if body is not None:
                if self._seen.method != "HEAD":
                    self._send(body)
            else:
                async for chunk in self._chunks():
                    await self._write(chunk)
                await self._end()
            await self._writer.drain()
        except _EndedError:
            raise ConnectionAbortedError from None

    def _whole_body(self) -> bytes:
        if self._response.text is not None:
            return self._response.text.encode("utf-8", "surrogatepass")
        return json.dumps(expected_result(self._response), ensure_ascii=False).encode()

    def _head(self, length: int | None) -> bytes:
        response = self._response
        media = "text/event-stream" if response.is_stream else "application/json"
        if not response.is_stream and response.status >= 400:
            media = "application/problem+json"
        headers = {"content-type": media}
        if self._encoding is not None:
            headers["content-encoding"] = self._encoding
        if response.header_bytes:
            headers["x-filler"] = "f" * response.header_bytes
        if length is not None and self._framing != "close":
            headers["content-length"] = str(length)
        elif self._framing == "chunked":
            headers["transfer-encoding"] = "chunked"
        if response.then == "close" or self._framing == "close":
            headers["connection"] = "close"
        given = {name.lower() for name in response.headers}
        headers = {name: value for name, value in headers.items() if name not in given}
        lines = [f"HTTP/{response.version} {response.status} {response.reason}"]
        soon = datetime.now(UTC) + timedelta(seconds=_SOON_S)
        for name, value in {**headers, **response.headers}.items():
            filled = value.replace("{elsewhere}", self._connection.other_origin)
            filled = _DATE.sub(lambda match: soon.strftime(match[1]), filled)
            lines.append(f"{name}: {filled}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")

    def _send(self, data: bytes) -> None:
        if len(self._seen.sent) < _KEPT_WRITES:
            self._seen.sent.append(data[:_KEPT_BYTES])
        self._writer.write(data)

    async def _write(self, data: bytes) -> None:
        encoded = self._encoder.write(data)
        if self._framing == "chunked":
            size = f"{len(encoded):x}{self._response.chunk_extension}\r\n"
            encoded = size.encode() + encoded + b"\r\n"
        self._send(encoded)
        await self._writer.drain()

    async def _end(self) -> None:
        last = self._encoder.end()
        if self._framing == "chunked":
            if last:
                last = f"{len(last):x}\r\n".encode() + last + b"\r\n"
            trailers = self._response.trailers.items()
            end = "".join(f"{name}: {value}\r\n" for name, value in trailers)
            last += f"0\r\n{end}\r\n".encode()
        self._send(last)

    async def _chunks(self, *, only_bytes: bool = False) -> AsyncIterator[bytes]:
        """The writes of a stream; what is to happen between them happens between them.

        Raises:
            _EndedError: if the response ends here.
        """
        response, ends = self._response, line_ends(self._response)
        pending = "\ufeff".encode() if response.bom else b""
        for item in response.items():
            data = encode_item(item, response, self._connection.wire, ends)
            if data:
                pending += data
                if response.cut == "whole" or only_bytes:
                    continue
                for write in _writes(pending, response.cut, item):
                    yield write
                pending = b""
                continue
            if pending:
                yield pending
                pending = b""
            if item.then == "end":
                return
            if not only_bytes:
                async for comment in self._happen(item):
                    yield comment
        if pending:
            yield pending

    async def _happen(self, item: Item) -> AsyncIterator[bytes]:
        if item.pause_ms is not None:
            await self._pause(item.pause_ms)
        elif item.observed is not None:
            await self._until_observed(item.observed)
        elif item.drip_ms is not None:
            async for comment in self._drip(item.drip_ms / 1e3):
                yield comment
        elif item.then == "silence":
            await self._connection.until_ended(self._seen, SILENCE_S)
            self._seen.is_given_up = not self._seen.ended.is_set()
            raise _EndedError
        elif item.then in ("cut", "reset"):
            if item.then == "reset":
                transport: Any = self._writer.transport
                transport.abort()
            raise _EndedError

    async def _until_observed(self, events: int) -> None:
        """Wait until the client has reported so many events, or given up.

        Raises:
            _EndedError: if it has given up.
        """
        reported = asyncio.create_task(self._connection.progress.reported(events))
        ended = asyncio.create_task(self._connection.until_ended(self._seen, SILENCE_S))
        try:
            await asyncio.wait([reported, ended], return_when=asyncio.FIRST_COMPLETED)
            if not reported.done():
                self._seen.unobserved = events
                raise _EndedError
        finally:
            await _cancel(reported, ended)

    async def _pause(self, milliseconds: float) -> None:
        began = time.monotonic()
        await asyncio.sleep(milliseconds / 1e3)
        self._seen.longest_pause = max(self._seen.longest_pause, time.monotonic() - began)

    async def _drip(self, seconds: float) -> AsyncIterator[bytes]:
        """Send comments until the client ends the request."""
        ended = asyncio.create_task(self._connection.until_ended(self._seen, SILENCE_S))
        try:
            while not ended.done():
                yield b": still here\n\n"
                await asyncio.wait([ended], timeout=seconds)
        finally:
            await _cancel(ended)
        self._seen.is_given_up = not self._seen.ended.is_set()
        raise _EndedError


async def _cancel(*tasks: asyncio.Task[None]) -> None:
    """Cancel tasks, and wait: one that still reads would keep others from reading."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _writes(data: bytes, cut: str | int, item: Item) -> Iterable[bytes]:
    """The writes into which the bytes of a part are cut."""
    if item.repeat is not None or item.large is not None:
        # Cut as the network would: 100,000 events in some writes.
        return _cut_each(data, _WRITE_BYTES)
    if cut == "bytes":
        return _cut_each(data, 1)
    if isinstance(cut, int):
        return _cut_each(data, cut)
    if cut == "lines":
        return data.splitlines(keepends=True)
    if cut == "returns":
        return [part for part in _after_returns(data) if part]
    return [data]


def _after_returns(data: bytes) -> Iterable[bytes]:
    *parts, last = data.split(b"\r")
    return [*(part + b"\r" for part in parts), last]


def _cut_each(data: bytes, size: int) -> Iterable[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))
