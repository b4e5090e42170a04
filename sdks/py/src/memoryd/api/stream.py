"""Streams of server-sent events, which a stop of the daemon ends."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager

from anyio import CancelScope
from starlette.responses import StreamingResponse
from starlette.types import Send

from memoryd.api.respond import NO_STORE


class Streams:
    """The open streams. The server would wait for them at its stop unless they are ended."""

    def __init__(self) -> None:
        self._open: set[CancelScope] = set()
        self._ended = False

    @contextmanager
    def track(self) -> Iterator[CancelScope]:
        """Count a stream as open for the block; `end` cancels the scope."""
        with CancelScope() as scope:
            self._open.add(scope)
            if self._ended:
                scope.cancel()
            try:
                yield scope
            finally:
                self._open.discard(scope)

    def end(self) -> None:
        """End all streams, and every later one at once."""
        self._ended = True
        for scope in self._open:
            scope.cancel()


class EventStream(StreamingResponse):
    def __init__(
        self, events: AsyncGenerator[bytes, None], streams: Streams, final_event: bytes = b""
    ) -> None:
        """`final_event` is sent if a stop of the daemon ends the stream."""
        super().__init__(events, media_type="text/event-stream", headers=NO_STORE)
        self._events = events
        self._streams = streams
        self._final_event = final_event

    async def stream_response(self, send: Send) -> None:
        await send(
            {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        )
        with self._streams.track() as scope:
            async with aclosing(self._events) as events:
                async for event in events:
                    await send({"type": "http.response.body", "body": event, "more_body": True})
        last = self._final_event if scope.cancelled_caught else b""
        await send({"type": "http.response.body", "body": last, "more_body": False})
