"""The daemon of client cases: answers as a case says, and records what it is sent."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self

import h11

from memconform.conformance.clients.case import Response, Wire
from memconform.conformance.clients.scripted_response import (
    SILENCE_S,
    Progress,
    ScriptedResponse,
)
from memconform.conformance.clients.seen_request import SeenRequest

_HEAD_BYTES = 1 << 20
_READ_BYTES = 1 << 16


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
    _server: asyncio.Server | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _writers: list[asyncio.StreamWriter] = field(default_factory=list)
    _connections: int = 0
    port: int = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, self.host, 0, limit=_HEAD_BYTES)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:
            # To close one would wait for a client that does not read.
            writer.transport.abort()

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
        self._writers.append(writer)
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
            if not await self._answer(parser, seen, response):
                return
            # The next request needs a parser in its first state; what has come already is kept.
            rest, _ = parser.trailing_data
            parser = h11.Connection(h11.SERVER, max_incomplete_event_size=_HEAD_BYTES)
            if rest:
                parser.receive_data(rest)

    async def _answer(self, parser: h11.Connection, seen: SeenRequest, response: Response) -> bool:
        """Read the rest of a request and answer it; whether the connection is kept."""
        if response.early is None:
            if parser.they_are_waiting_for_100_continue:
                self.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            if not await self._read_body(parser, seen):
                return False
        if response.hang_up:
            return False
        # Before it is sent, so that the time to the next request is never too short.
        seen.answered_at = time.monotonic()
        try:
            await ScriptedResponse(self, seen, response).send()
        except ConnectionError:
            seen.end()
            raise
        if response.early == "stops-reading":
            # Whoever must send all of its request before it reads waits for ever.
            await asyncio.sleep(SILENCE_S)
            return False
        # A client that has its response need not send the rest.
        is_read = response.early is None or await self._read_body(parser, seen)
        return is_read and response.then == "keep" and response.framing != "close"

    async def _event(self, parser: h11.Connection) -> object:
        while (event := parser.next_event()) is h11.NEED_DATA:
            parser.receive_data(await self.reader.read(_READ_BYTES))
        return event

    async def _read_body(self, parser: h11.Connection, seen: SeenRequest) -> bool:
        """Read the body of a request; False if the client ends the connection before its end."""
        parts = []
        try:
            while isinstance(event := await self._event(parser), h11.Data):
                parts.append(bytes(event.data))
        except h11.RemoteProtocolError:
            seen.end()
            return False
        seen.body = b"".join(parts)
        return True

    @property
    def wire(self) -> Wire:
        return self.daemon.wire

    @property
    def progress(self) -> Progress:
        return self.daemon.progress

    @property
    def other_origin(self) -> str:
        return "" if self.daemon.elsewhere is None else self.daemon.elsewhere.origin

    async def until_ended(self, seen: SeenRequest, seconds: float) -> None:
        """Wait until the client has ended the connection, at most for `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                while await self.reader.read(_READ_BYTES):
                    pass
        except TimeoutError:
            return
        except ConnectionError:
            pass
        seen.end()
