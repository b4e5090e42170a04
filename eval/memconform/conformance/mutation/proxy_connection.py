"""One client connection through the proxy: forwards exchanges and applies the mutation to them."""

import asyncio
import re
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import h11

from memconform.conformance.mutation.mutation import Mutation, fits
from memconform.conformance.mutation.rewriting import EventRewriter, rewrite_answer, rewrite_request

_READ = 65_536
_HEAD_LIMIT = 1 << 20
"""Bytes of a request's head or trailers, without its body, from which they are passed through as
they come: a daemon decides how it ends headers without end."""
_POLL_SECONDS = 0.02


@dataclass(slots=True)
class MutationCounter:
    """Reads the current mutation and counts its exchanges; a changed file resets the count."""

    path: Path
    text: str = ""
    mutation: Mutation = field(default_factory=Mutation)
    seen: int = 0

    def now(self) -> Mutation:
        text = self.path.read_text(encoding="utf-8") if self.path.is_file() else ""
        if text != self.text:
            self.text, self.seen = text, 0
            self.mutation = Mutation.model_validate_json(text) if text else Mutation()
        return self.mutation

    def strikes(self) -> bool:
        """Count one matching exchange; return whether to alter it."""
        when = self.mutation.when
        self.seen += 1
        return self.seen > when.skip and (when.times is None or self.seen <= when.skip + when.times)


class Connection:
    """A client connection, paired with its own connection to the daemon."""

    def __init__(
        self,
        client: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        daemon: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        counter: MutationCounter,
        die: asyncio.Event,
    ) -> None:
        self._from_client, self._to_client = client
        self._from_daemon, self._to_daemon = daemon
        self._counter = counter
        self._die = die
        self._raw = bytearray()
        self._waits = True
        """Whether nothing of a request has been forwarded yet."""

    async def serve(self) -> None:
        monitor = asyncio.create_task(self._close_with_the_daemon())
        try:
            await self._serve()
        finally:
            monitor.cancel()

    async def _close_with_the_daemon(self) -> None:
        """Close the client's connection when the daemon closes its own before it has a request.

        Otherwise the client's next request would be lost. uvicorn closes idle connections after
        5 s, which is how long a second daemon takes to start on a busy machine; and daemons end a
        request that takes too long to arrive.
        """
        while not (self._waits and self._from_daemon.at_eof()):  # noqa: ASYNC110 - no event to await
            await asyncio.sleep(_POLL_SECONDS)
        self._to_client.close()

    async def _serve(self) -> None:
        while True:
            self._waits = True
            parser = h11.Connection(h11.SERVER, max_incomplete_event_size=_HEAD_LIMIT)
            if self._raw:
                parser.receive_data(bytes(self._raw))
            try:
                request, body, rest = await self._read_request(parser)
            except h11.RemoteProtocolError:
                self._waits = False
                await self._pipe()
                return
            self._waits = False
            if request is None:
                return
            self._raw = bytearray(rest)
            if not await self._exchange(request, body):
                return

    async def _read_request(
        self, parser: h11.Connection
    ) -> tuple[h11.Request | None, bytes, bytes]:
        request: h11.Request | None = None
        body = bytearray()
        while True:
            event = parser.next_event()
            if event is h11.NEED_DATA:
                if parser.they_are_waiting_for_100_continue:
                    self._to_client.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                    parser.send(h11.InformationalResponse(status_code=100, headers=[]))
                data = await self._from_client.read(_READ)
                self._raw += data
                parser.receive_data(data)
                if not data and request is None:
                    return None, b"", b""
            elif isinstance(event, h11.Request):
                request = event
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage):
                return request, bytes(body), parser.trailing_data[0]
            elif isinstance(event, h11.ConnectionClosed):
                return None, b"", b""

    async def _pipe(self) -> None:
        """Forward bytes both ways, starting with what was already read from the client."""
        self._to_daemon.write(bytes(self._raw))

        async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while data := await reader.read(_READ):
                writer.write(data)
                await writer.drain()
            with suppress(OSError):
                writer.write_eof()

        await asyncio.gather(
            pump(self._from_client, self._to_daemon), pump(self._from_daemon, self._to_client)
        )

    async def _exchange(self, request: h11.Request, body: bytes) -> bool:
        """Handle one request and its response; return whether to keep the connection."""
        method, target = request.method.decode(), request.target.decode("latin-1")
        head = "\n".join(f"{n.decode()}: {v.decode('latin-1')}" for n, v in request.headers)
        mutation = self._counter.now()
        if mutation.dies_of and re.search(mutation.dies_of, target):
            self._die.set()
            return False
        matches = fits(mutation.when, method, target, head, body)
        if matches and not mutation.when.status:
            matches = self._counter.strikes()
        active = mutation if matches else Mutation()
        if active.tell:
            sys.stderr.write(f"{active.tell}\n")
            sys.stderr.flush()
        if active.hang:
            await asyncio.sleep(3600)
        if active.close == "before":
            return False
        await asyncio.sleep(active.delay_ms / 1e3)
        if active.swallow is not None:
            answer = active.swallow
            self._to_client.write(
                _encode(answer.status, list(answer.headers.items()), answer.body())
            )
            return True
        watcher = asyncio.create_task(self._watch(outlive=active.outlive_client))
        try:
            if active.send_twice:
                await self._forward(active, request, body, silent=True)
            return await self._forward(active, request, body, silent=False)
        finally:
            # No other coroutine may read from the client before the watcher has ended.
            watcher.cancel()
            await asyncio.gather(watcher, return_exceptions=True)

    async def _forward(
        self, mutation: Mutation, request: h11.Request, body: bytes, *, silent: bool
    ) -> bool:
        """Forward a request, and its response unless `silent`."""
        self._to_daemon.write(rewrite_request(mutation, request, body))
        parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=1 << 26)
        # Tells the parser the method, because the response to a HEAD has no body.
        parser.send(h11.Request(method=request.method, target="/", headers=[("Host", "x")]))
        parser.send(h11.EndOfMessage())
        return await self._answer(parser, mutation, request.method.decode(), silent=silent)

    async def _watch(self, *, outlive: bool) -> None:
        """Close the daemon's connection when the client disconnects; keep what the client sends."""
        try:
            while data := await self._from_client.read(_READ):
                self._raw += data
        except ConnectionError:
            if not outlive:
                self._to_daemon.transport.abort()
        else:
            if not outlive:
                with suppress(OSError):
                    self._to_daemon.write_eof()

    async def _answer(
        self, parser: h11.Connection, mutation: Mutation, method: str, *, silent: bool
    ) -> bool:
        response = await self._next(parser)
        while isinstance(response, h11.InformationalResponse):
            response = await self._next(parser)
        if not isinstance(response, h11.Response):
            return False
        status = response.status_code
        if mutation.when.status:
            hit = status in mutation.when.status and self._counter.strikes()
            mutation = mutation if hit else Mutation()
        headers = [(n.decode(), v.decode("latin-1")) for n, v in response.headers.raw_items()]
        media = next((v for n, v in headers if n.lower() == "content-type"), "")
        closing = any(n.lower() == "connection" and v.lower() == "close" for n, v in headers)
        if media.startswith("text/event-stream") and not silent:
            await self._stream(parser, mutation, status, headers)
            return False
        body = bytearray()
        while isinstance(event := await self._next(parser), h11.Data):
            body += event.data
        if event is None:
            return False
        if not silent:
            no_body = method == "HEAD" and mutation.body is None
            self._write(mutation, status, headers, bytes(body), no_body=no_body)
            await self._to_client.drain()
        return not closing and mutation.close is None

    def _write(
        self,
        mutation: Mutation,
        status: int,
        headers: list[tuple[str, str]],
        body: bytes,
        *,
        no_body: bool,
    ) -> None:
        status, headers, body = rewrite_answer(mutation, status, headers, body)
        data = _encode(status, headers, body, no_body=no_body)
        self._to_client.write(data[: len(data) // 2] if mutation.close == "half" else data)

    async def _stream(
        self,
        parser: h11.Connection,
        mutation: Mutation,
        status: int,
        headers: list[tuple[str, str]],
    ) -> None:
        status, headers, _ = rewrite_answer(mutation, status, headers, b"")
        end_to_end = [(n, v) for n, v in headers if n.lower() not in _FRAMING]
        lines = [f"HTTP/1.1 {status} X", *(f"{n}: {v}" for n, v in end_to_end)]
        lines += ["Transfer-Encoding: chunked", "Connection: close", "", ""]
        self._to_client.write("\r\n".join(lines).encode("latin-1"))
        rewriter, buffer = EventRewriter(mutation), bytearray()
        while isinstance(event := await self._next(parser), h11.Data):
            out = rewriter.feed(bytes(event.data))
            if mutation.buffer_events:
                buffer += out
            elif out:
                self._chunk(out)
                if not mutation.outlive_client:
                    await self._to_client.drain()
        self._chunk(bytes(buffer) + rewriter.finish())
        if mutation.keep_open:
            await asyncio.sleep(3600)
        if isinstance(event, h11.EndOfMessage) and mutation.close != "half":
            self._to_client.write(b"0\r\n\r\n")

    def _chunk(self, data: bytes) -> None:
        if data:
            self._to_client.write(b"%x\r\n%s\r\n" % (len(data), data))

    async def _next(self, parser: h11.Connection) -> h11.Event | None:
        while (event := parser.next_event()) is h11.NEED_DATA:
            parser.receive_data(await self._from_daemon.read(_READ))
        return event if isinstance(event, h11.Event) else None


_LENGTHS = ("content-length", "transfer-encoding")
_FRAMING = (*_LENGTHS, "connection")


def _encode(
    status: int, headers: list[tuple[str, str]], body: bytes, *, no_body: bool = False
) -> bytes:
    """Encode a response, framed by its length; it says so if its connection then ends."""
    headers = [(n, v) for n, v in headers if n.lower() not in _LENGTHS or no_body]
    if status != 204 and not no_body:
        headers.append(("Content-Length", str(len(body))))
    lines = [f"HTTP/1.1 {status} X", *(f"{n}: {v}" for n, v in headers), "", ""]
    return "\r\n".join(lines).encode("latin-1", "replace") + (b"" if no_body else body)
