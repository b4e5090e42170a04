"""TCP streams whose timeouts are never caused by this process being busy.

asyncio runs ready socket callbacks before the timers that are due, and a timer that cancels
`loop.sock_recv` discards what was just received: an answer that arrived while the event loop was
busy was lost and reported as a timeout. Here a timer only wakes the reader, which then checks the
socket itself.
"""

import asyncio
import os
import socket
import time
from collections.abc import Callable, Iterable
from errno import EINPROGRESS
from typing import Any

import httpcore
from httpcore import AsyncNetworkStream

SocketOption = (
    tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]
)

_Register = Callable[[int, Callable[[], None]], Any]


class SocketStream(AsyncNetworkStream):
    """A connected socket without a buffer in this process: unread bytes stay in the kernel."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._loop = asyncio.get_running_loop()

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        deadline = _Deadline(timeout)
        try:
            while True:
                # Checked before the socket: what has arrived by now is never late.
                is_over = deadline.remaining <= 0
                try:
                    return self._socket.recv(max_bytes)
                except BlockingIOError:
                    if is_over:
                        raise httpcore.ReadTimeout from None
                await _wait(self._socket, deadline, readable=True)
        except OSError as error:
            raise httpcore.ReadError(str(error)) from error

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        deadline = _Deadline(timeout)
        unsent = memoryview(buffer)
        try:
            while unsent:
                is_over = deadline.remaining <= 0
                try:
                    unsent = unsent[self._socket.send(unsent) :]
                    continue
                except BlockingIOError:
                    if is_over:
                        raise httpcore.WriteTimeout from None
                await _wait(self._socket, deadline, readable=False)
        except OSError as error:
            raise httpcore.WriteError(str(error)) from error

    async def aclose(self) -> None:
        self._socket.close()

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401 - httpcore's signature
        if info == "socket":
            return self._socket
        return None


async def connect(host: str, port: int, seconds: float | None) -> SocketStream:
    """Connect to the first address of `host` that accepts a connection.

    Raises:
        httpcore.ConnectTimeout: if none accepts within `seconds`.
        httpcore.ConnectError: if `host` does not resolve, or all its addresses refuse.
    """
    deadline = _Deadline(seconds)
    last_error: OSError | None = None
    for family, kind, protocol, _, address in await _resolve(host, port, deadline):
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(0)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await _finish_connecting(sock, address, deadline)
        except OSError as error:
            last_error = error
            sock.close()
        except BaseException:
            sock.close()
            raise
        else:
            return SocketStream(sock)
    raise httpcore.ConnectError(str(last_error)) from last_error


class _Deadline:
    def __init__(self, seconds: float | None) -> None:
        self._end = None if seconds is None else time.monotonic() + seconds

    @property
    def remaining(self) -> float:
        return float("inf") if self._end is None else self._end - time.monotonic()


async def _wait(sock: socket.socket, deadline: _Deadline, *, readable: bool) -> None:
    """Return once a socket may be ready or the deadline has passed; the caller checks which."""
    loop = asyncio.get_running_loop()
    woken: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        if not woken.done():
            woken.set_result(None)

    # Kept, because a socket closed in the meantime no longer knows its number.
    number = sock.fileno()
    register: _Register = loop.add_reader if readable else loop.add_writer
    remaining = deadline.remaining
    timer = None if remaining == float("inf") else loop.call_later(remaining, wake)
    register(number, wake)
    try:
        await woken
    finally:
        (loop.remove_reader if readable else loop.remove_writer)(number)
        if timer is not None:
            timer.cancel()


async def _finish_connecting(sock: socket.socket, address: Any, deadline: _Deadline) -> None:  # noqa: ANN401 - of any family
    code = sock.connect_ex(address)
    while code == EINPROGRESS:
        is_over = deadline.remaining <= 0
        if failure := sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            code = failure
        elif _is_connected(sock):
            return
        elif is_over:
            raise httpcore.ConnectTimeout
        else:
            await _wait(sock, deadline, readable=False)
    if code:
        raise OSError(code, os.strerror(code))


def _is_connected(sock: socket.socket) -> bool:
    try:
        sock.getpeername()
    except OSError:
        return False
    return True


async def _resolve(host: str, port: int, deadline: _Deadline) -> Iterable[tuple[Any, ...]]:
    """Resolve `host`; a numeric address needs no thread."""
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        pass
    loop = asyncio.get_running_loop()
    resolution = asyncio.ensure_future(loop.getaddrinfo(host, port, type=socket.SOCK_STREAM))
    try:
        remaining = deadline.remaining
        await asyncio.wait({resolution}, timeout=None if remaining == float("inf") else remaining)
        if not resolution.done():
            raise httpcore.ConnectTimeout
        return resolution.result()
    except socket.gaierror as error:
        raise httpcore.ConnectError(str(error)) from error
    finally:
        resolution.cancel()
