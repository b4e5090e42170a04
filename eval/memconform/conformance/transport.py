"""Requests of cases over HTTP, byte by byte as the case has their target; streams in background."""

import asyncio
import ssl
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import Any

import httpx
from httpx_sse import EventSource, SSEError

from memconform.client.byte_streams import observe_body, without_bom
from memconform.client.recorder import Exchange
from memconform.conformance.step_result import Event, StepResult

RESPONSE_LIMIT = 64 * 2**20
"""Bytes of an answer; the largest that a case asks for has 12 MiB."""

STREAM_LIMIT = 8 * 2**20
"""Bytes of a stream; the longest that a case makes has some 3 MiB."""

_SHOWN_WHILE_OPEN = 65_536
"""Bytes of an open stream that are kept up to date; copying more with each event adds up."""

_CONNECTIONS = 512


class _TooLongError(Exception):
    pass


@cache
def certificates() -> ssl.SSLContext:
    """Loaded once: it takes 25 ms, which every case would pay for its client."""
    return httpx.create_ssl_context()


class Sender:
    """Sends to one server over one pool, as a client that lives as long as the case."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self._http = httpx.AsyncClient(
            base_url=base_url,
            # A body is held to what was sent as it comes; a daemon that may compress would.
            headers={"Accept-Encoding": "identity"},
            timeout=None,  # noqa: S113 - each step has its own
            limits=httpx.Limits(max_connections=_CONNECTIONS),
            verify=certificates(),
            trust_env=False,
        )

    async def close(self) -> None:
        await self._http.aclose()

    def request(
        self, line: str, headers: Mapping[str, Any], body: bytes | None
    ) -> tuple[httpx.Request, Exchange]:
        method, _, target = line.partition(" ")
        pairs = [
            (name, each)
            for name, value in headers.items()
            for each in (value if isinstance(value, list) else [value])
        ]
        request = self._http.build_request(
            method,
            "/",
            headers=pairs,
            content=body,
            # httpx would tidy dots and escapes, which a case may be about.
            extensions={"target": target.encode("utf-8", "surrogatepass")},
        )
        # What a case sends stands in the case.
        return request, Exchange(request, open=True)

    async def send(self, request: httpx.Request, exchange: Exchange, seconds: float) -> StepResult:
        """The whole answer; what keeps it from coming is the outcome's failure."""
        target = request.extensions["target"].decode("latin-1")
        outcome = StepResult(f"{request.method} {target}", exchange=exchange)
        started = time.perf_counter()
        body = bytearray()
        try:
            async with asyncio.timeout(seconds):
                response = await self._http.send(request, stream=True)
                try:
                    _begin(outcome, response)
                    async for piece in response.aiter_raw():
                        exchange.add_body(piece)
                        body += piece
                        if len(body) > RESPONSE_LIMIT:
                            outcome.failure = f"the answer has more than {RESPONSE_LIMIT} bytes"
                            break
                finally:
                    await response.aclose()
        except TimeoutError:
            outcome.failure = f"no whole answer within {seconds:g} s"
            outcome.ended = "open"
        except (httpx.HTTPError, httpx.StreamError) as error:
            outcome.failure = f"{type(error).__name__}: {error}".rstrip(": ")
            outcome.ended = "cut"
        else:
            outcome.ended = "end"
        outcome.body = bytes(body)
        outcome.took_ms = _since(started)
        return outcome

    async def open(self, request: httpx.Request, exchange: Exchange, seconds: float) -> "Stream":
        """The answer from its head on; its body is read in the background."""
        return await Stream.begin(self._http, request, exchange, seconds)


def _begin(outcome: StepResult, response: httpx.Response) -> None:
    outcome.status = response.status_code
    outcome.headers = list(response.headers.multi_items())
    if outcome.exchange is not None:
        outcome.exchange.begin_response(response)


def _since(started: float) -> float:
    return round((time.perf_counter() - started) * 1e3, 3)


class Stream:
    """An answer that is read as it comes; `outcome` grows meanwhile."""

    def __init__(self, outcome: StepResult, started: float) -> None:
        self.outcome = outcome
        self._started = started
        self._counts: Counter[str] = Counter()
        self._changed = asyncio.Condition()
        self._reading: asyncio.Task[None] | None = None
        self._response: httpx.Response | None = None

    @classmethod
    async def begin(
        cls, http: httpx.AsyncClient, request: httpx.Request, exchange: Exchange, seconds: float
    ) -> "Stream":
        target = request.extensions["target"].decode("latin-1")
        started = time.perf_counter()
        outcome = StepResult(f"{request.method} {target}", exchange=exchange, ended="open")
        stream = cls(outcome, started)
        try:
            async with asyncio.timeout(seconds):
                response = await http.send(request, stream=True)
        except TimeoutError:
            stream.outcome.failure = f"no head of an answer within {seconds:g} s"
        except httpx.HTTPError as error:
            stream.outcome.failure = f"{type(error).__name__}: {error}".rstrip(": ")
            stream.outcome.ended = "cut"
        else:
            _begin(stream.outcome, response)
            stream._response = response
        stream.outcome.took_ms = _since(started)
        return stream

    def read(self) -> None:
        """Begin to read what comes."""
        if self._response is not None:
            self._reading = asyncio.create_task(self._read(self._response))

    async def _read(self, response: httpx.Response) -> None:
        outcome = self.outcome
        body = bytearray()

        def keep(piece: bytes) -> None:
            body.extend(piece)
            if outcome.exchange is not None:
                outcome.exchange.add_body(piece)
            if len(body) > STREAM_LIMIT:
                raise _TooLongError

        observe_body(response, keep)
        try:
            try:
                async for event in EventSource(without_bom(response)).aiter_sse():
                    at = _since(self._started)
                    outcome.events.append(Event(event.event, event.data, event.id, at))
                    outcome.body = bytes(body) if len(body) <= _SHOWN_WHILE_OPEN else b""
                    self._counts[event.event] += 1
                    await self._tell()
            except SSEError:
                await response.aread()
            outcome.ended = "end"
        except (httpx.HTTPError, httpx.StreamError) as error:
            outcome.ended = "cut"
            outcome.failure = f"{type(error).__name__}: {error}".rstrip(": ")
        except _TooLongError:
            outcome.failure = f"the stream has more than {STREAM_LIMIT} bytes, and no end"
        finally:
            outcome.body = bytes(body)
            outcome.took_ms = _since(self._started)
            await response.aclose()
            await self._tell()

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def wait(self, event: str | None, count: int, seconds: float) -> None:
        """Until the stream has ended, or has so many events of that name, or the time is up."""

        def reached() -> bool:
            if self.outcome.ended != "open" or self.outcome.failure is not None:
                return True
            return event is not None and self._counts[event] >= count

        with suppress(TimeoutError):
            async with asyncio.timeout(seconds), self._changed:
                await self._changed.wait_for(reached)

    async def close(self) -> None:
        """Leave, as a client that goes away."""
        if self._reading is not None:
            self._reading.cancel()
            with suppress(asyncio.CancelledError):
                await self._reading
        if self._response is not None:
            await self._response.aclose()
