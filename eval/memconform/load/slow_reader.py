"""Clients that read the answer of an ask slowly, as one behind a bad connection does."""

import asyncio
import socket
from collections import Counter
from urllib.parse import urlsplit

from memconform.errors import UsageError
from memconform.load.records import SlowReaderRecord

READ_BYTES = 256
"""How much is read at a time."""
PAUSE_SECONDS = 0.1
"""How long a reader pauses then: it reads 2560 bytes a second."""
_WINDOW_BYTES = 4_096
"""What the kernel may hold of an answer that was not read; Linux doubles it."""
_LAST_CHUNK = b"0\r\n\r\n"


class SlowReaders:
    """Reads answers slowly, one after another by each reader, until it is cancelled."""

    def __init__(self, base_url: str, readers: int, limit_s: float) -> None:
        """Create them; `limit_s` is the time in which the daemon must send something, in seconds.

        Raises:
            UsageError: `bad_option` if the daemon is reached by TLS, which decides itself how much
                it reads.
        """
        self._url = urlsplit(base_url)
        if self._url.scheme != "http":
            raise UsageError(
                f"--slow-readers need plain HTTP, and the daemon is at {base_url}",
                code="bad_option",
                hint="omit them",
            )
        self._limit_s = limit_s
        self._readers = readers
        self._opened = self._completed = self._interrupted = self._bytes = 0
        self._errors: Counter[str] = Counter()

    async def read_all(self, messages: list[bytes]) -> None:
        """Send each reader's requests in turn, beginning with one of its own, without end."""
        async with asyncio.TaskGroup() as group:
            for reader in range(self._readers):
                group.create_task(self._read_on(messages, reader))

    async def _read_on(self, messages: list[bytes], reader: int) -> None:
        while True:
            reader += self._readers
            try:
                code = await self._read(messages[reader % len(messages)])
            except OSError:
                code = "connection_broken"
            except TimeoutError:
                code = "timeout"
            if code is not None:
                self._errors[code] += 1
                # A daemon that refuses at once is not to be flooded.
                await asyncio.sleep(PAUSE_SECONDS)

    async def _read(self, message: bytes) -> str | None:
        """Read one answer; returns the code of a failure."""
        loop = asyncio.get_running_loop()
        host, port = self._url.hostname or "", self._url.port or 80
        [(family, kind, protocol, _, address), *_] = await loop.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        )
        with socket.socket(family, kind, protocol) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _WINDOW_BYTES)
            connection.settimeout(0)
            async with asyncio.timeout(self._limit_s):
                await loop.sock_connect(connection, address)
                await loop.sock_sendall(connection, message)
            self._opened += 1
            try:
                return await self._read_answer(connection)
            except asyncio.CancelledError:
                self._interrupted += 1
                raise

    async def _read_answer(self, connection: socket.socket) -> str | None:
        loop = asyncio.get_running_loop()
        head = tail = b""
        while True:
            async with asyncio.timeout(self._limit_s):
                data = await loop.sock_recv(connection, READ_BYTES)
            if not data:
                break
            self._bytes += len(data)
            if b"\r\n\r\n" not in head:
                head += data
            tail = (tail + data)[-len(_LAST_CHUNK) :]
            await asyncio.sleep(PAUSE_SECONDS)
        status, _, fields = head.partition(b"\r\n\r\n")[0].partition(b"\r\n")
        if status.split()[1:2] != [b"200"]:
            number = status.split()[1:2]
            return f"http_{number[0].decode('ascii', 'replace')}" if number else "connection_broken"
        if b"transfer-encoding: chunked" in fields.lower() and tail != _LAST_CHUNK:
            return "connection_broken"
        self._completed += 1
        return None

    def record(self) -> SlowReaderRecord:
        """What was read so far."""
        return SlowReaderRecord(
            readers=self._readers,
            bytes_per_s=round(READ_BYTES / PAUSE_SECONDS),
            opened=self._opened,
            completed=self._completed,
            interrupted=self._interrupted,
            bytes_read=self._bytes,
            errors=dict(sorted(self._errors.items())),
        )
