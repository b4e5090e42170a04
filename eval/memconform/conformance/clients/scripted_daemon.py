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
                await ScriptedResponse(self, seen, response).send()
            except ConnectionError:
                seen.end(self.daemon.progress.last_sign)
                raise
            seen.answered_at = time.monotonic()
            if response.early == "reads-on":
                await self._read_body(parser, seen)
            elif response.early == "stops-reading":
                await self.until_ended(seen, SILENCE_S)
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
            seen.is_given_up = seconds == SILENCE_S
            return
        except ConnectionError:
            pass
        seen.end(self.daemon.progress.last_sign)
