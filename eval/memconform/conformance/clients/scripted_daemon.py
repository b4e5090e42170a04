"""The daemon of client cases: answers as a case says, byte by byte, and records what it is sent."""

import asyncio
import json
import re
import time
import zlib
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, Self

import h11

from memconform.conformance.clients.case import Item, Response, Wire
from memconform.conformance.clients.wire import (
    encode_item,
    expected_result,
    line_ends,
)

_SILENCE_S = 15.0
"""How long the daemon waits for a client to give up, which has limits far below it."""
END_SECONDS = 3.0
"""How long after its last sign of life a client may take to end a request. The contract has 1 s,
which a busy machine may double."""
_OBSERVED_S = 5.0
"""How long a client may take to report an event that it was sent; its limits are longer."""
_HEAD_BYTES = 1 << 20
_DATE = re.compile(r"\{date:([^}]+)\}")
"""In a header: a date that is soon, in this format."""
_SOON_S = 3
_OFFERED = {"gzip": "gzip", "deflate": "deflate", "raw-deflate": "deflate"}
"""Encodings that are used for clients which offer them, and their names."""
_READ_BYTES = 1 << 16


@dataclass(slots=True)
class SeenRequest:
    """A request of the client, as it arrived."""

    connection: int
    method: str
    target: str
    headers: list[tuple[str, str]]
    at: float
    """When its headers were complete, in seconds of the monotonic clock."""
    body: bytes = b""
    answered_at: float | None = None
    """When the last byte of the response was written."""
    ended_after: float | None = None
    """Seconds from the last sign of life of the client to the end of its connection."""
    is_given_up: bool = False
    """Whether the daemon waited in vain for the client to end the request."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the client has ended the connection while the daemon still sent."""
    unobserved: int | None = None
    """The number of events for which the daemon waited in vain to be reported."""
    is_unoffered: bool = False
    """Whether the response was not encoded, because the client does not offer its encoding."""
    longest_pause: float = 0.0
    """The longest of the pauses that the case asks for, as it was kept, in seconds."""

    def end(self, last_sign: float) -> None:
        """Note that the client has ended the connection, given when it last reported something."""
        self.ended_after = max(0.0, time.monotonic() - last_sign)
        self.ended.set()

    def header(self, name: str) -> str | None:
        """The first header of that name, in lower case; None if there is none."""
        return next((value for key, value in self.headers if key == name), None)

    def json(self) -> Any:  # noqa: ANN401 - whatever the client sent
        """Its body; None if that is not JSON."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None


class Progress(Protocol):
    """What the client has reported of the current call."""

    async def reported(self, events: int) -> None:
        """Wait until the client has reported so many events."""

    @property
    def last_sign(self) -> float:
        """When the client last reported something, in seconds of the monotonic clock."""


@dataclass(slots=True)
class ScriptedDaemon:
    """Answers the requests of one case on a port of its own; use as a context."""

    responses: Sequence[Response]
    wire: Wire
    progress: Progress
    host: str = "127.0.0.1"
    requests: list[SeenRequest] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    """Bugs of memconform: what went wrong in here."""
    elsewhere: "ScriptedDaemon | None" = None
    """Another origin, to which redirects may lead."""
    _servers: list[asyncio.Server] = field(default_factory=list)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _connections: int = 0
    port: int = 0

    async def __aenter__(self) -> Self:
        server = await asyncio.start_server(self._accept, self.host, 0, limit=_HEAD_BYTES)
        self._servers.append(server)
        self.port = server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        for server in self._servers:
            server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def origin(self) -> str:
        """Its address, without a path."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self._connections += 1
        connection = _Connection(self, self._connections, reader, writer)
        try:
            await connection.serve()
        except (ConnectionError, asyncio.CancelledError):
            pass
        except h11.RemoteProtocolError as error:
            self.requests.append(_invalid(self._connections, str(error)))
        except Exception as error:  # noqa: BLE001 - else only asyncio's log would have it
            self.faults.append(f"{type(error).__name__}: {error}")
        finally:
            with suppress(Exception):
                writer.close()

    def response_to(self, number: int) -> Response:
        """The response to the nth request, from 0."""
        return self.responses[min(number, len(self.responses) - 1)]


def _invalid(connection: int, why: str) -> SeenRequest:
    return SeenRequest(connection, "invalid", why, [], time.monotonic())


@dataclass(slots=True)
class _Connection:
    daemon: ScriptedDaemon
    number: int
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def serve(self) -> None:
        """Answer one request after the other, until either side ends the connection."""
        parser = h11.Connection(h11.SERVER, max_incomplete_event_size=_HEAD_BYTES)
        while True:
            head = await self._event(parser)
            if not isinstance(head, h11.Request):
                return
            seen = SeenRequest(
                connection=self.number,
                method=head.method.decode(),
                target=head.target.decode("utf-8", "replace"),
                headers=[(k.decode("latin-1"), v.decode("latin-1")) for k, v in head.headers],
                at=time.monotonic(),
            )
            response = self.daemon.response_to(len(self.daemon.requests))
            self.daemon.requests.append(seen)
            if response.early is None:
                await self._read_body(parser, seen)
            if response.hang_up:
                return
            try:
                await _Reply(self, seen, response).send()
            except ConnectionError:
                seen.end(self.daemon.progress.last_sign)
                raise
            seen.answered_at = time.monotonic()
            if response.early == "reads-on":
                await self._read_body(parser, seen)
            elif response.early == "stops-reading":
                await self.until_ended(seen, _SILENCE_S)
                return
            if response.then == "close-later":
                # As a daemon does that keeps connections for a short time.
                return
            if response.then == "close" or response.framing == "close":
                return
            # The next request needs a parser in its first state; what has come already is kept.
            rest, _ = parser.trailing_data
            parser = h11.Connection(h11.SERVER, max_incomplete_event_size=_HEAD_BYTES)
            if rest:
                parser.receive_data(rest)

    async def _event(self, parser: h11.Connection) -> object:
        while (event := parser.next_event()) is h11.NEED_DATA:
            parser.receive_data(await self.reader.read(_READ_BYTES))
        return event

    async def _read_body(self, parser: h11.Connection, seen: SeenRequest) -> None:
        parts = []
        while isinstance(event := await self._event(parser), h11.Data):
            parts.append(bytes(event.data))
        seen.body = b"".join(parts)

    async def until_ended(self, seen: SeenRequest, seconds: float) -> None:
        """Wait until the client has ended the connection, at most for `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                while await self.reader.read(_READ_BYTES):
                    pass
        except TimeoutError:
            seen.is_given_up = seconds == _SILENCE_S
            return
        except ConnectionError:
            pass
        seen.end(self.daemon.progress.last_sign)


class _Encoder:
    """Encodes the writes of a body, each so that it can be decoded at once."""

    def __init__(self, encoding: str | None) -> None:
        bits = {"gzip": 31, "deflate": 15, "raw-deflate": -15}.get(encoding or "")
        self._deflate = None if bits is None else zlib.compressobj(wbits=bits)
        self._is_garbled = encoding is not None and bits is None

    def write(self, data: bytes) -> bytes:
        if self._deflate is not None:
            return self._deflate.compress(data) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        # An encoding that nobody can decode: whoever ignores it must not read the answer.
        return bytes(byte ^ 0x55 for byte in data) if self._is_garbled else data

    def end(self) -> bytes:
        return b"" if self._deflate is None else self._deflate.flush()


class _EndedError(Exception):
    """The response has ended before its last part, as the case says."""


class _Reply:
    """Writes one response."""

    def __init__(self, connection: _Connection, seen: SeenRequest, response: Response) -> None:
        self._connection = connection
        self._writer = connection.writer
        self._seen = seen
        self._response = response
        self._framing = response.framing
        encoding = response.encoding
        if encoding in _OFFERED and _OFFERED[encoding] not in (
            seen.header("accept-encoding") or ""
        ):
            encoding, seen.is_unoffered = None, True
        self._encoding = encoding
        self._encoder = _Encoder(encoding)

    async def send(self) -> None:
        """Write all of it, or as much as the case says."""
        response = self._response
        if response.delay_ms is not None:
            await self._connection.until_ended(self._seen, response.delay_ms / 1e3)
            if self._seen.ended.is_set():
                raise ConnectionAbortedError
        for status in response.informational:
            self._writer.write(f"HTTP/1.1 {status} Informational\r\nx-note: early\r\n\r\n".encode())
        body = None if response.is_stream else self._whole_body()
        if body is not None and self._framing == "chunked":
            self._framing = "length"
        if body is None and self._framing == "length":
            body = b"".join([chunk async for chunk in self._chunks(only_bytes=True)])
        if body is not None:
            body = self._encoder.write(body) + self._encoder.end()
        head = self._head(None if body is None else len(body))
        for piece in _cut_each(head, 1 if response.cut_head else len(head)):
            self._writer.write(piece)
            await self._writer.drain()
        try:
            if body is not None:
                if self._seen.method != "HEAD":
                    self._writer.write(body)
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
            headers["content-encoding"] = self._encoding.removeprefix("raw-")
        if response.header_bytes:
            headers["x-filler"] = "f" * response.header_bytes
        if length is not None and self._framing != "close":
            headers["content-length"] = str(length)
        elif self._framing == "chunked":
            headers["transfer-encoding"] = "chunked"
        if response.then == "close" or self._framing == "close":
            headers["connection"] = "close"
        given = {name.lower(): value for name, value in response.headers.items()}
        other = self._connection.daemon.elsewhere
        lines = [f"HTTP/{response.version} {response.status} {response.reason}"]
        soon = datetime.now(UTC) + timedelta(seconds=_SOON_S)
        for name, value in {**headers, **given}.items():
            filled = value.replace("{origin}", self._connection.daemon.origin)
            filled = filled.replace("{elsewhere}", "" if other is None else other.origin)
            filled = _DATE.sub(lambda match: soon.strftime(match[1]), filled)
            lines.append(f"{name}: {filled}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    async def _write(self, data: bytes) -> None:
        encoded = self._encoder.write(data)
        if self._framing == "chunked":
            size = f"{len(encoded):x}{self._response.chunk_extension}\r\n"
            encoded = size.encode() + encoded + b"\r\n"
        self._writer.write(encoded)
        await self._writer.drain()

    async def _end(self) -> None:
        last = self._encoder.end()
        if self._framing == "chunked":
            if last:
                last = f"{len(last):x}\r\n".encode() + last + b"\r\n"
            trailers = self._response.trailers.items()
            end = "".join(f"{name}: {value}\r\n" for name, value in trailers)
            last += f"0\r\n{end}\r\n".encode()
        self._writer.write(last)

    async def _chunks(self, *, only_bytes: bool = False) -> AsyncIterator[bytes]:
        """The writes of a stream; what is to happen between them happens between them.

        Raises:
            _EndedError: if the response ends here.
        """
        response, ends = self._response, line_ends(self._response)
        pending = "\ufeff".encode() if response.bom else b""
        for item in response.items():
            data = encode_item(item, response, self._connection.daemon.wire, ends)
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
        progress = self._connection.daemon.progress
        if item.pause_ms is not None:
            await self._pause(item.pause_ms)
        elif item.observed is not None:
            try:
                async with asyncio.timeout(_OBSERVED_S):
                    await progress.reported(item.observed)
            except TimeoutError:
                self._seen.unobserved = item.observed
                raise _EndedError from None
        elif item.drip_ms is not None:
            async for comment in self._drip(item.drip_ms / 1e3):
                yield comment
        elif item.then == "silence":
            await self._connection.until_ended(self._seen, _SILENCE_S)
            raise _EndedError
        elif item.then in ("cut", "reset"):
            if item.then == "reset":
                transport: Any = self._writer.transport
                transport.abort()
            raise _EndedError

    async def _pause(self, milliseconds: float) -> None:
        began = time.monotonic()
        await asyncio.sleep(milliseconds / 1e3)
        self._seen.longest_pause = max(self._seen.longest_pause, time.monotonic() - began)

    async def _drip(self, seconds: float) -> AsyncIterator[bytes]:
        """Send comments until the client ends the request."""
        ended = asyncio.create_task(self._connection.until_ended(self._seen, _SILENCE_S))
        try:
            while not ended.done():
                yield b": still here\n\n"
                await asyncio.wait([ended], timeout=seconds)
        finally:
            ended.cancel()
        raise _EndedError


def _writes(data: bytes, cut: str | int, item: Item) -> Iterable[bytes]:
    """The writes into which the bytes of a part are cut."""
    if item.repeat is not None or item.large is not None:
        # Cut as the network would: 100,000 events in some writes.
        return _cut_each(data, _READ_BYTES)
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
