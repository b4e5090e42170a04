"""Gives each request of a case a connection of its own, and blames each response for its own end.

A client that reuses connections reads what a daemon sends after a response as the answer to its
next request. One daemon sends a body with 204, upon which its server drops the connection: that
was reported of the request that followed, as `POST /v1/brains: no response`, 66 times.
"""

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass

import httpcore
import httpx

from memconform.client.transport import Transport
from memconform.conformance.causes import Fault, cause_of
from memconform.conformance.exchange_shapes import WireFault
from memconform.conformance.step_result import StepResult
from memconform.tls import tls_context

CUT = (
    *(httpx.HTTPError, httpx.StreamError),
    *(httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException),
    *(httpcore.UnsupportedProtocol, httpcore.ConnectionNotAvailable),
)
"""What is raised if a connection breaks, or if what comes is not HTTP."""

_CONNECTION = "memconform.connection"

_PAUSES: Iterable[float] = (0.001, 0.002, 0.004, 0.008, 0.016)
"""Seconds between looks at a connection after a response. A server that ends it does so as soon as
the response is written; no request waits for this, only the end of a case does."""

_IDLE_SECONDS = 1.0
"""How soon after a response the end of its connection belongs to it: servers close idle ones after
5 s (uvicorn, Node.js) or never (Go). If the machine stood still for longer, nobody is blamed."""


@dataclass(frozen=True, slots=True)
class _End:
    """The end of a response, after which its connection is watched."""

    outcome: StepResult
    connection: Transport
    is_announced: bool
    """Whether the response itself says that the connection ends with it."""
    at: float
    """When the response was complete, by the clock of `time.monotonic`."""


class Connections(httpx.AsyncBaseTransport):
    """httpx's transport with a new connection for each request, which is watched after it."""

    def __init__(self) -> None:
        self.faults: list[tuple[WireFault, StepResult]] = []
        """What came after responses, each with the exchange that it belongs to; after `aclose`."""
        self._open: dict[Transport, httpx.Response | None] = {}
        """Each with its response, once that has begun; closing its pool does not end one in use."""
        self._watches: list[asyncio.Task[None]] = []
        self._is_watching = True

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        secure = request.url.scheme == "https"
        context = tls_context(str(request.url))
        connection = Transport(connections=1, secure=secure, certificates=context, is_strict=True)
        self._open[connection] = None
        response = await connection.handle_async_request(request)
        self._open[connection] = response
        response.extensions = {**response.extensions, _CONNECTION: connection}
        return response

    def watch(self, outcome: StepResult, response: httpx.Response) -> None:
        """Watch the connection of a response that is complete, while other requests are sent."""
        if self._is_watching:
            connection = response.extensions[_CONNECTION]
            end = _End(outcome, connection, _announces_end(response), time.monotonic())
            self._watches.append(asyncio.create_task(self._watch(end)))

    def stop_watching(self) -> None:
        """Blame no response for what comes from now on: the daemon is about to be stopped.

        That must not wait for the watches, or a daemon would have the time to do later what it
        acknowledged before.
        """
        self._is_watching = False
        for watch in self._watches:
            watch.cancel()

    async def _watch(self, end: _End) -> None:
        fault = await _fault_after(end)
        if fault is not None:
            cause = cause_of(end.outcome, fault)
            self.faults.append((WireFault(fault.message, cause), end.outcome))
        await end.connection.aclose()
        del self._open[end.connection]

    async def aclose(self) -> None:
        """Wait for what the last responses are watched for, and close all connections."""
        await asyncio.gather(*self._watches, return_exceptions=True)
        self._watches.clear()
        while self._open:
            connection, response = self._open.popitem()
            if response is not None:
                await response.aclose()
            await connection.aclose()


def _announces_end(response: httpx.Response) -> bool:
    """Whether a response says, or shows by having no length, that its connection then ends."""
    headers = response.headers
    if "close" in headers.get("connection", "").lower() or response.http_version == "HTTP/1.0":
        return True
    has_body = response.status_code not in (204, 304) and response.request.method != "HEAD"
    return has_body and not {"content-length", "transfer-encoding"}.intersection(headers)


async def _fault_after(end: _End) -> Fault | None:
    """Return what is wrong with the end of a response; None if nothing is."""
    outcome = end.outcome
    is_open = await end.connection.is_open()
    for pause in _PAUSES:
        if not is_open:
            break
        await asyncio.sleep(pause)
        is_open = await end.connection.is_open()
    surplus = end.connection.take_unsolicited()
    if surplus:
        return Fault(f"{surplus!r} came after the response", "bytes after the response")
    is_prompt = time.monotonic() - end.at < _IDLE_SECONDS
    if is_open or end.is_announced or not is_prompt or outcome.ended != "end":
        return None
    return Fault(
        f"the connection ends after the {outcome.status}, without `Connection: close`: a client"
        " that reuses it loses its next request",
        "the connection ends after the response, unannounced",
    )
