"""TCP without a time-out that is this process's own doing.

asyncio runs what a socket has ready before the timers that are due, and a timer that cancels
`loop.sock_recv` throws away what it has just received: an answer that came while the event loop was
busy was lost and reported as a time-out. Here a timer only wakes the reader, which then looks into
the socket itself.
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
    """A connected socket, read without a buffer of our own: what is unread is in the kernel."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._loop = asyncio.get_running_loop()

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        deadline = _Deadline(timeout)
        try:
            while True:
                # Taken before the socket is looked into: what came until then is never late.
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
    """Connect to the first address of `host` that takes a connection.

    Raises:
        httpcore.ConnectTimeout: if none has within `seconds`.
        httpcore.ConnectError: if all of them refuse.
    """
    deadline = _Deadline(seconds)
    failed: OSError | None = None
    for family, kind, protocol, _, address in await _resolve(host, port, deadline):
        connecting = socket.socket(family, kind, protocol)
        try:
            connecting.settimeout(0)
            connecting.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await _finish_connecting(connecting, address, deadline)
        except OSError as error:
            failed = error
            connecting.close()
        except BaseException:
            connecting.close()
            raise
        else:
            return SocketStream(connecting)
    raise httpcore.ConnectError(str(failed)) from failed


class _Deadline:
    def __init__(self, seconds: float | None) -> None:
        self._end = None if seconds is None else time.monotonic() + seconds

    @property
    def remaining(self) -> float:
        return float("inf") if self._end is None else self._end - time.monotonic()


async def _wait(waiting: socket.socket, deadline: _Deadline, *, readable: bool) -> None:
    """Return once a socket may be ready, or the time is over; the caller looks which of them."""
    loop = asyncio.get_running_loop()
    woken: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        if not woken.done():
            woken.set_result(None)

    # Its number: a socket that is closed meanwhile has none to be removed by.
    number = waiting.fileno()
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


async def _finish_connecting(connecting: socket.socket, address: Any, deadline: _Deadline) -> None:  # noqa: ANN401 - of any family
    code = connecting.connect_ex(address)
    while code == EINPROGRESS:
        is_over = deadline.remaining <= 0
        if failure := connecting.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            code = failure
        elif _is_connected(connecting):
            return
        elif is_over:
            raise httpcore.ConnectTimeout
        else:
            await _wait(connecting, deadline, readable=False)
    if code:
        raise OSError(code, os.strerror(code))


def _is_connected(connecting: socket.socket) -> bool:
    try:
        connecting.getpeername()
    except OSError:
        return False
    return True


async def _resolve(host: str, port: int, deadline: _Deadline) -> Iterable[tuple[Any, ...]]:
    """The addresses of `host`; one that is written as a number takes no thread."""
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        pass
    loop = asyncio.get_running_loop()
    resolving = asyncio.ensure_future(loop.getaddrinfo(host, port, type=socket.SOCK_STREAM))
    try:
        remaining = deadline.remaining
        await asyncio.wait({resolving}, timeout=None if remaining == float("inf") else remaining)
        if not resolving.done():
            raise httpcore.ConnectTimeout
        return resolving.result()
    except socket.gaierror as error:
        raise httpcore.ConnectError(str(error)) from error
    finally:
        resolving.cancel()
