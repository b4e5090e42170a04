"""Gives each request of a case a connection of its own, and blames each response for its own end.

A client that reuses connections reads what a daemon sends after a response as the answer to its
next request. One daemon sends a body with 204, upon which its server drops the connection: that
was reported of the request that followed, as `POST /v1/brains: no response`, 66 times.
"""

import ssl
import time
from dataclasses import dataclass
from functools import cache

import httpcore
import httpx

from memconform.client.transport import Transport
from memconform.conformance.causes import Fault, cause_of
from memconform.conformance.step_result import StepResult
from memconform.conformance.wire import WireFault

CUT = (
    *(httpx.HTTPError, httpx.StreamError),
    *(httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException),
    *(httpcore.UnsupportedProtocol, httpcore.ConnectionNotAvailable),
)
"""What is raised if a connection breaks, or if what comes is not HTTP."""

_CONNECTION = "memconform.connection"

_IDLE_SECONDS = 1.0
"""How soon after a response the end of its connection belongs to it: servers close idle ones after
5 s (uvicorn, Node.js) or never (Go)."""


@cache
def certificates() -> ssl.SSLContext:
    """Return the TLS context, loaded once: loading takes 25 ms, which every case would pay."""
    return httpx.create_ssl_context()


@dataclass(frozen=True, slots=True)
class _Finished:
    outcome: StepResult
    connection: Transport
    closes: bool
    """Whether the response itself says that the connection ends with it."""
    at: float
    """When the response was complete, by the clock of `time.monotonic`."""


class Connections(httpx.AsyncBaseTransport):
    """httpx's transport with a new connection for each request, kept until the next one ends."""

    def __init__(self) -> None:
        self.faults: list[tuple[WireFault, StepResult]] = []
        """What came after responses, each with the exchange that it belongs to."""
        self._open: list[Transport] = []
        self._finished: list[_Finished] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        secure = request.url.scheme == "https"
        connection = Transport(
            connections=1, secure=secure, certificates=certificates(), is_strict=True
        )
        self._open.append(connection)
        response = await connection.handle_async_request(request)
        response.extensions = {**response.extensions, _CONNECTION: connection}
        return response

    async def finish(self, outcome: StepResult, response: httpx.Response) -> None:
        """Examine the connections of earlier responses, now that this one is complete.

        The daemon has meanwhile had the time to send what follows, or to close.
        """
        finished, self._finished = self._finished, []
        connection = response.extensions[_CONNECTION]
        self._finished.append(
            _Finished(outcome, connection, _announces_end(response), time.monotonic())
        )
        for each in finished:
            fault = await _fault_after(each)
            if fault is not None:
                cause = cause_of(each.outcome, fault)
                self.faults.append((WireFault(fault.message, cause), each.outcome))
            self._open.remove(each.connection)
            await each.connection.aclose()

    async def aclose(self) -> None:
        while self._open:
            await self._open.pop().aclose()


def _announces_end(response: httpx.Response) -> bool:
    """Whether a response says, or shows by having no length, that its connection then ends."""
    headers = response.headers
    if "close" in headers.get("connection", "").lower() or response.http_version == "HTTP/1.0":
        return True
    has_body = response.status_code not in (204, 304) and response.request.method != "HEAD"
    return has_body and not {"content-length", "transfer-encoding"}.intersection(headers)


async def _fault_after(finished: _Finished) -> Fault | None:
    """Return what is wrong with the end of a response; None if nothing is."""
    outcome = finished.outcome
    is_open = await finished.connection.is_open()
    surplus = finished.connection.take_unsolicited()
    if surplus:
        return Fault(f"{surplus!r} came after the response", "bytes after the response")
    is_prompt = time.monotonic() - finished.at < _IDLE_SECONDS
    if is_open or finished.closes or not is_prompt or outcome.ended != "end":
        return None
    return Fault(
        f"the connection ends after the {outcome.status}, without `Connection: close`: a client"
        " that reuses it loses its next request",
        "the connection ends after the response, unannounced",
    )
