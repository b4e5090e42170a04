"""HTTP/1.1 to one daemon: detects unsolicited bytes and starts the clock with the last write.

Bytes after a response on a keep-alive connection would be read as the response to the next
request, and every later answer would belong to another question. h11 does not expose such bytes;
therefore the stream withholds the last byte of what it receives. If the parser is done while that
byte is still withheld, the daemon has sent more than one response.
"""

import asyncio
import socket
import ssl
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Self

import httpcore
import httpx
from httpcore import AsyncNetworkBackend, AsyncNetworkStream

from memconform.client.pool import ConnectionPool
from memconform.client.sockets import SocketOption, connect
from memconform.client.timings import STALL_SECONDS

_EXCERPT_BYTES = 64
"""How many unsolicited bytes an error message shows."""
_WITHOUT_BODY = (b"204", b"304")
"""Statuses whose responses end with their headers (RFC 9112, 6.3)."""
_STATUS_LINE = b"HTTP/"


class CallClock:
    """The latency and the deadlines of one call, in seconds.

    The latency starts before the last piece of the request is written: the daemon works from then
    on, whether or not this process runs. The deadlines start after it, so that a stall in between
    takes nothing of the daemon's time.
    """

    def __init__(self, first: float, total: float) -> None:
        self._first = first
        self._total = total
        self._started = time.perf_counter()
        """When the last piece of the request began to be written; before that, when the call
        began."""
        self._deadline = self._end = self._started + total

    @property
    def started(self) -> float:
        """The instant from which the latency counts, in seconds of `time.perf_counter`."""
        return self._started

    def sent(self, began: float) -> None:
        """Restart the clock: a piece of the request, which began to be written then, is sent."""
        self._started = began
        self._end = time.perf_counter() + self._total
        self.allow(self._first)

    def allow(self, seconds: float) -> None:
        """Allow the daemon `seconds` for its next piece, within the limit of the whole call."""
        self._deadline = min(time.perf_counter() + seconds, self._end)

    def remaining(self) -> float:
        return self._deadline - time.perf_counter()

    def excuse_stall(self) -> bool:
        """Extend a deadline that was noticed late by as much; whether it was.

        If the whole machine stops, the deadline passes although the daemon was not slow.
        """
        late = -self.remaining()
        if late <= STALL_SECONDS:
            return False
        self._deadline += 2 * late
        self._end = max(self._end, self._deadline)
        return True

    def elapsed_ms(self) -> float:
        return (time.perf_counter() - self._started) * 1e3


_clock: ContextVar[CallClock | None] = ContextVar("clock", default=None)


@contextmanager
def timed(clock: CallClock) -> Iterator[CallClock]:
    """Apply the deadlines of `clock` to every read and write of requests sent in the block."""
    token = _clock.set(clock)
    try:
        yield clock
    finally:
        _clock.reset(token)


class Transport(httpx.AsyncBaseTransport):
    """httpx's transport over one connection pool; raises httpcore's exceptions unchanged."""

    def __init__(
        self,
        *,
        connections: int,
        secure: bool,
        certificates: ssl.SSLContext | None = None,
        is_strict: bool = False,
    ) -> None:
        """Create it.

        Args:
            connections: The most connections at once.
            secure: Whether requests use TLS.
            certificates: The context of TLS; by default it is loaded if `secure`.
            is_strict: Whether the needless body of a 204 is unsolicited, too.
        """
        self._backend = _Backend(secure=secure, is_strict=is_strict)
        self._pool = ConnectionPool(
            connections=connections,
            # Without TLS there is nothing to verify, and loading the certificates takes 25 ms.
            ssl_context=certificates
            or (
                httpcore.default_ssl_context()
                if secure
                else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            ),
            backend=self._backend,
        )

    def take_unsolicited(self) -> bytes:
        """Return and forget the first unsolicited bytes received since the last call.

        The connection over which they came is closed.
        """
        unsolicited, self._backend.unsolicited = self._backend.unsolicited, b""
        return unsolicited

    async def is_open(self) -> bool:
        """Whether a connection is idle that the daemon has not closed."""
        return await self._pool.has_idle()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self._pool.send(
            httpcore.Request(
                method=request.method,
                url=httpcore.URL(
                    scheme=request.url.raw_scheme,
                    host=request.url.raw_host,
                    port=request.url.port,
                    target=request.url.raw_path,
                ),
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        return httpx.Response(
            response.status,
            headers=response.headers,
            stream=response,
            extensions=response.extensions,
        )

    async def __aenter__(self) -> Self:
        return self

    async def aclose(self) -> None:
        await self._pool.aclose()


class _CheckedStream(AsyncNetworkStream):
    """Reports unsolicited bytes to its backend and enforces the deadlines of the call."""

    def __init__(self, inner: AsyncNetworkStream, backend: "_Backend") -> None:
        self._inner = inner
        self._backend = backend
        self._withheld = b""
        self._beginning = b""
        """The first bytes received since the last ones were sent."""
        self._head: bytes | None = None
        """The head of a request, until something is written after it, which may be nothing."""
        self._expects_head = True

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        if self._withheld:
            data, self._withheld = self._withheld, b""
            return data
        clock = _clock.get()
        if clock is not None:
            timeout = max(clock.remaining(), 0)
        try:
            data = await self._inner.read(max_bytes, timeout)
        except httpcore.ReadTimeout:
            if clock is None or not clock.excuse_stall():
                raise
            data = await self._inner.read(max_bytes, max(clock.remaining(), 0))
        self._beginning = self._beginning or data
        self._expects_head = True
        if len(data) > 1:
            data, self._withheld = data[:-1], data[-1:]
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Send a piece of a request, its head together with the first piece of its body.

        A daemon that had the head alone waited for the body, and counted that as time of its own.
        """
        if self._expects_head:
            self._head, self._expects_head = buffer, False
            return
        if self._head is not None:
            buffer, self._head = self._head + buffer, None
        # Nothing is written at the end of a body, after its last piece.
        if not buffer:
            return
        clock = _clock.get()
        self._beginning = b""
        if clock is None:
            await self._inner.write(buffer, timeout)
            return
        began = time.perf_counter()
        await self._inner.write(buffer, max(clock.remaining(), 0))
        clock.sent(began)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
    ) -> AsyncNetworkStream:
        secured = await self._inner.start_tls(ssl_context, server_hostname, timeout)
        return _CheckedStream(secured, self._backend)

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401 - httpcore's signature
        """As in httpcore, which asks for `is_readable` of each idle connection.

        It does so when a response ends and before each request, and closes readable ones.
        """
        if info != "is_readable":
            return self._inner.get_extra_info(info)
        sock = self._inner.get_extra_info("socket")
        if not self._withheld and not isinstance(sock, socket.socket):
            return self._inner.get_extra_info(info)
        unread = self._withheld or _peek(sock)
        if unread and not self._is_needless_body(unread):
            self._backend.unsolicited = self._backend.unsolicited or unread
        return unread is not None

    def _is_needless_body(self, unread: bytes) -> bool:
        """Whether unread bytes are the body of a response that has none.

        A server that sends one with each 204 is not out of step: nothing can be read from these
        bytes, because what is not a response begins otherwise. The connection is closed.
        """
        if self._backend.is_strict:
            return False
        head, _, rest = self._beginning.partition(b"\r\n\r\n")
        if head[9:12] not in _WITHOUT_BODY:
            return False
        body = rest or unread
        return not (body.startswith(_STATUS_LINE) or _STATUS_LINE.startswith(body))


def _peek(sock: socket.socket) -> bytes | None:
    """Peek at a socket's unread bytes; None if there are none, empty at the end of the stream."""
    try:
        return sock.recv(_EXCERPT_BYTES, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return None
    except OSError:
        return b""


class _Backend(AsyncNetworkBackend):
    def __init__(self, *, secure: bool, is_strict: bool = False) -> None:
        # TLS has its own buffer, and unread bytes in the socket may be part of a record. anyio
        # never cancels a completed read, so that a busy event loop loses nothing there.
        self._anyio = httpcore.AnyIOBackend() if secure else None
        self.unsolicited = b""
        self.is_strict = is_strict

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
        local_address: str | None = None,
        socket_options: Iterable[SocketOption] | None = None,
    ) -> AsyncNetworkStream:
        if self._anyio is None:
            return _CheckedStream(await connect(host, port, timeout), self)
        inner = await self._anyio.connect_tcp(host, port, timeout, local_address, socket_options)
        return _CheckedStream(inner, self)

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
        socket_options: Iterable[SocketOption] | None = None,
    ) -> AsyncNetworkStream:
        raise httpcore.UnsupportedProtocol(f"unix socket {path} after {timeout} {socket_options}")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
