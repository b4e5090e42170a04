"""The HTTP protocol of a connection, with a deadline for the arrival of each request."""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


def deadline_protocol(seconds: float) -> type[HttpToolsProtocol]:
    """uvicorn's protocol, which ends a connection whose request takes longer than `seconds`.

    uvicorn has no such limit, so that clients which send a request without end could hold all
    connections. The first request is counted from the start of the connection.
    """

    class DeadlineProtocol(HttpToolsProtocol):
        _deadline: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._expect()

        def on_message_begin(self) -> None:
            super().on_message_begin()
            if self._deadline is None:
                self._expect()

        def on_message_complete(self) -> None:
            super().on_message_complete()
            self._relax()

        def connection_lost(self, exc: Exception | None) -> None:
            self._relax()
            super().connection_lost(exc)

        def _expect(self) -> None:
            self._deadline = self.loop.call_later(seconds, self.transport.abort)

        def _relax(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

    return DeadlineProtocol
