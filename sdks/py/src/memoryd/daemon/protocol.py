"""The HTTP protocol of a connection, with limits for the arrival of each request."""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from memoryd.api.respond import problem_response
from memoryd.problem import invalid

_STALLED_S = 120.0
"""How long a client may leave a response unread before it counts as disconnected."""


_HEAD_LIMIT = 2**16
"""How many bytes may arrive without any of a body among them: the headers of a request, or its
trailers. They stay in memory until their end comes, which an unauthenticated client can put off."""


def deadline_protocol(seconds: float, stalled_s: float = _STALLED_S) -> type[HttpToolsProtocol]:
    """uvicorn's protocol, which ends a connection whose request takes longer than `seconds`.

    It also ends one whose client has left a response unread for `stalled_s`, and limits headers.
    uvicorn has no such limits, so that clients which send a request without end, or never read a
    stream, could hold all connections or all memory. What is not HTTP is answered with a problem.
    The first request is counted from the start of the connection.
    """

    class DeadlineProtocol(HttpToolsProtocol):
        _deadline: asyncio.TimerHandle | None = None
        _stalled: asyncio.TimerHandle | None = None
        _head_bytes = 0

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._expect()

        def data_received(self, data: bytes) -> None:
            self._head_bytes += len(data)
            super().data_received(data)
            if self._head_bytes > _HEAD_LIMIT and not self.transport.is_closing():
                self.send_400_response("the headers are too long")

        def send_400_response(self, msg: str) -> None:
            # It is None before the first request, whatever its annotation.
            if self.cycle is not None and not self.cycle.response_complete:  # type: ignore[redundant-expr]
                # It would be taken for the response to the request before.
                self.transport.abort()
                return
            response = problem_response(invalid(msg), {"Connection": "close"})
            head = b"".join(b"%s: %s\r\n" % header for header in response.raw_headers)
            self.transport.write(b"HTTP/1.1 400 Bad Request\r\n%s\r\n%s" % (head, response.body))
            self.transport.close()

        def on_body(self, body: bytes) -> None:
            self._head_bytes = 0
            super().on_body(body)

        def on_message_begin(self) -> None:
            super().on_message_begin()
            if self._deadline is None:
                self._expect()

        def on_message_complete(self) -> None:
            super().on_message_complete()
            self._head_bytes = 0
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
