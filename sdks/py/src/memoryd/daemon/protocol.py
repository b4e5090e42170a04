"""The HTTP protocol of a connection, with a deadline for the arrival of each request."""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_STALLED_S = 120.0
"""How long a client may leave a response unread before it counts as disconnected."""


def deadline_protocol(seconds: float, stalled_s: float = _STALLED_S) -> type[HttpToolsProtocol]:
    """uvicorn's protocol, which ends a connection whose request takes longer than `seconds`.

    It also ends one whose client has left a response unread for `stalled_s`. uvicorn has no such
    limits, so that clients which send a request without end, or never read a stream, could hold
    all connections. The first request is counted from the start of the connection.
    """

    class DeadlineProtocol(HttpToolsProtocol):
        _deadline: asyncio.TimerHandle | None = None
        _stalled: asyncio.TimerHandle | None = None

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

        def pause_writing(self) -> None:
            super().pause_writing()
            self._stalled = self.loop.call_later(stalled_s, self.transport.abort)

        def resume_writing(self) -> None:
            super().resume_writing()
            self._unstall()

        def connection_lost(self, exc: Exception | None) -> None:
            self._relax()
            self._unstall()
            super().connection_lost(exc)

        def _unstall(self) -> None:
            if self._stalled is not None:
                self._stalled.cancel()
                self._stalled = None

        def _expect(self) -> None:
            self._deadline = self.loop.call_later(seconds, self.transport.abort)

        def _relax(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

    return DeadlineProtocol
