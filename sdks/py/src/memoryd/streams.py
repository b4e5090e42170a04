"""Streams of server-sent events, and their end where the daemon's comes first."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager

from anyio import CancelScope
from starlette.responses import StreamingResponse
from starlette.types import Send

from memoryd.responses import NO_STORE


class Streams:
    """Those that are open. The server waits for them at its end, unless they are told of it."""

    def __init__(self) -> None:
        self._open: set[CancelScope] = set()
        self._ended = False

    @contextmanager
    def opened(self) -> Iterator[CancelScope]:
        with CancelScope() as scope:
            self._open.add(scope)
            if self._ended:
                scope.cancel()
            try:
                yield scope
            finally:
                self._open.discard(scope)

    def end(self) -> None:
        """End all, those too that are begun later."""
        self._ended = True
        for scope in self._open:
            scope.cancel()


class EventStream(StreamingResponse):
    def __init__(
        self, events: AsyncGenerator[bytes, None], streams: Streams, farewell: bytes = b""
    ) -> None:
        """`farewell` is sent where the daemon ends the stream."""
        super().__init__(events, media_type="text/event-stream", headers=NO_STORE)
        self._events = events
        self._streams = streams
        self._farewell = farewell

    async def stream_response(self, send: Send) -> None:
        await send(
            {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        )
        with self._streams.opened() as scope:
            async with aclosing(self._events) as events:
                async for event in events:
                    await send({"type": "http.response.body", "body": event, "more_body": True})
        last = self._farewell if scope.cancelled_caught else b""
        await send({"type": "http.response.body", "body": last, "more_body": False})
