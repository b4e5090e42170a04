"""A minimal HTTP/1.1 server for the null server and for tests: sends even what is not HTTP."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet


@dataclass(frozen=True, slots=True)
class RawRequest:
    """A request as it was received; header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> dict[str, Any]:
        value = json.loads(self.body or b"{}")
        return value if isinstance(value, dict) else {}


class RawExchange:
    """Writes the response to one request, with control over every byte."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    async def raw(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def reply(self, status: int, body: bytes, media_type: str = "application/json") -> None:
        head = f"HTTP/1.1 {status} X\r\nContent-Type: {media_type}\r\n"
        await self.raw(head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body)

    async def json(self, body: Mapping[str, Any], status: int = 200) -> None:
        await self.reply(status, json.dumps(body).encode())

    async def problem(self, status: int, code: str, detail: str) -> None:
        body = {"status": status, "title": code, "detail": detail, "code": code}
        await self.reply(status, json.dumps(body).encode(), "application/problem+json")

    async def begin_stream(self) -> None:
        await self.raw(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )

    async def piece(self, data: bytes) -> None:
        """Send one chunk of a chunked body."""
        await self.raw(b"%x\r\n%s\r\n" % (len(data), data))

    async def end_stream(self) -> None:
        await self.raw(b"0\r\n\r\n")

    @property
    def connection(self) -> asyncio.BaseTransport:
        """The connection, which is the same for all requests that come over it."""
        return self._writer.transport

    def abort(self) -> None:
        """Break the connection as a crash would."""
        self._writer.transport.abort()


class _Bad(Exception):  # noqa: N818 - the connection ends; nobody reports it
    """A request that is not HTTP, or too long."""


Handler = Callable[[RawRequest, RawExchange], Awaitable[None]]


async def serve_forever(handler: Handler, host: str, port: int, *, stubborn: bool = False) -> None:
    """Print `listening on …`, then serve until SIGTERM, or forever if `stubborn`."""
    stop = asyncio.Event()
    on_term = (lambda: None) if stubborn else stop.set
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, on_term)
    host = host.removeprefix("[").removesuffix("]")
    async with serving(handler, host, port) as bound:
        sys.stdout.write(f"listening on http://{f'[{host}]' if ':' in host else host}:{bound}\n")
        sys.stdout.flush()
        await stop.wait()


@asynccontextmanager
async def serving(handler: Handler, host: str, port: int) -> AsyncIterator[int]:
    """Serve in tasks of this event loop; yields the port. Closes all connections at the end."""
    tasks: set[asyncio.Task[None]] = set()
    transports: WeakSet[asyncio.WriteTransport] = WeakSet()

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, _Bad):
                while (request := await _read_request(reader)) is not None:
                    await handler(request, RawExchange(writer))
            writer.close()
        except BaseException:
            # To close would wait until a client reads that never does.
            writer.transport.abort()
            raise

    # Not a coroutine: a task that is cancelled before it begins would not close its connection.
    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        transports.add(writer.transport)
        task = asyncio.create_task(converse(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(connected, host.strip("[]"), port)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        # A connection that asyncio accepts just before the server closes would stay open: first
        # none is accepted any more, and those that were are made known two iterations later.
        loop = asyncio.get_running_loop()
        for listener in server.sockets:
            loop.remove_reader(listener.fileno())
        for _ in range(3):
            await asyncio.sleep(0)
        server.close()
        ending = list(tasks)
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        for transport in transports:
            # Closing waits for a client that does not read; aborting does not.
            transport.abort()
        # Their sockets are closed one iteration of the event loop later.
        await asyncio.sleep(0)


async def _read_request(reader: asyncio.StreamReader) -> RawRequest | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    except asyncio.LimitOverrunError as error:
        raise _Bad from error
    first, *lines = head.decode("latin-1").split("\r\n")
    if first.count(" ") < 2:
        raise _Bad
    method, path, _ = first.split(" ", 2)
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
    }
    length = headers.get("content-length", "0")
    if not length.isdecimal():
        raise _Bad
    body = await reader.readexactly(int(length))
    return RawRequest(method, path, headers, body)
