"""Sends the HTTP requests of cases, with their exact target; reads streams in the background."""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import httpx
from httpx_sse import EventSource, SSEError

from memconform.client.recorder import Exchange
from memconform.client.response_streams import observe_body, without_bom
from memconform.client.timings import time_limit
from memconform.conformance.connections import CUT, Connections
from memconform.conformance.exchange_shapes import WireFault
from memconform.conformance.step_result import Event, StepResult
from memconform.conformance.translation import Translation

RESPONSE_LIMIT = 64 * 2**20
"""Largest response, in bytes; the largest that a case requests has 12 MiB."""

STREAM_LIMIT = 64 * 2**20
"""Largest stream, in bytes; the longest that a case causes has about 25 MiB."""

_OPEN_BODY_LIMIT = 65_536
"""Largest body of an open stream to copy at each event, in bytes; copying more is slow."""


class _TooLongError(Exception):
    """A stream exceeds STREAM_LIMIT."""


_CONTRACT_REQUEST = "memconform.contract_request"
"""The extension of a request that holds what it means in the contract."""


@dataclass(frozen=True, slots=True)
class ContractRequest:
    """A request as the contract puts it, and how the response to it is translated."""

    line: str
    body: bytes
    translation: Translation | None

    @property
    def label(self) -> str:
        """Names the step."""
        return self.line.encode("utf-8", "surrogatepass").decode("latin-1")

    def status(self, status: int) -> int:
        """The status, as the contract has it."""
        return status if self.translation is None else self.translation.status(self.line, status)

    def answer(self, status: int | None, body: bytes) -> bytes:
        """The body of a response, in the words of the contract."""
        is_success = status is not None and 200 <= status < 300
        if self.translation is None or not is_success:
            return body
        return self.translation.answer(self.line, body)

    def event(self, name: str, data: str) -> tuple[str, str]:
        """The name and data of an event, in the words of the contract."""
        if self.translation is None:
            return name, data
        return self.translation.event(self.line, name, data)


class Sender:
    """A client of one server that lives as long as the case; each request has its connection."""

    def __init__(self, base_url: str, translation: Translation | None = None) -> None:
        """`translation` is between the contract and the daemon's dialect, if it has one."""
        self.base_url = base_url
        self._translation = translation
        self._connections = Connections()
        self._http = httpx.AsyncClient(
            base_url=base_url,
            # Bodies are compared byte by byte, so the daemon must not compress them.
            headers={"Accept-Encoding": "identity"},
            timeout=None,  # noqa: S113 - each step has its own timeout
            transport=self._connections,
            trust_env=False,
        )

    @property
    def faults(self) -> list[tuple[WireFault, StepResult]]:
        """What came after responses, each with the exchange that it belongs to; after `close`."""
        return self._connections.faults

    def stop_watching(self) -> None:
        """Blame no response for what comes after it from now on: the daemon is to be stopped."""
        self._connections.stop_watching()

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    def request(
        self, line: str, headers: Mapping[str, Any], body: bytes | None
    ) -> tuple[httpx.Request, Exchange]:
        """Build a request from `METHOD /target`, and the recorder of its exchange.

        Raises:
            DialectError: `not_in_dialect` if the daemon's dialect has no such route or key.
        """
        asked = ContractRequest(line, body or b"", self._translation)
        if self._translation is not None:
            line, body = self._translation.request(line, body)
            headers = self._translation.headers(headers)
        method, _, target = line.partition(" ")
        pairs = [
            (name, item)
            for name, value in headers.items()
            for item in (value if isinstance(value, list) else [value])
        ]
        request = self._http.build_request(
            method,
            "/",
            headers=pairs,
            content=body,
            # httpx would normalize dots and escapes, which a case may be about.
            extensions={
                "target": target.encode("utf-8", "surrogatepass"),
                _CONTRACT_REQUEST: asked,
            },
        )
        # Nothing is masked: everything that a case sends is part of the case.
        return request, Exchange(request, open=True)

    async def send(
        self, request: httpx.Request, exchange: Exchange, seconds: float, *, watches: bool = True
    ) -> StepResult:
        """Send a request and read the whole response; errors become the result's failure.

        `watches` is whether what comes after the response is a fault of the daemon.
        """
        asked: ContractRequest = request.extensions[_CONTRACT_REQUEST]
        outcome = StepResult(asked.label, exchange=exchange, sent=asked.body)
        started = time.perf_counter()
        body = bytearray()
        try:
            async with time_limit(seconds):
                response = await self._http.send(request, stream=True)
                try:
                    _record_head(outcome, response, asked)
                    async for piece in response.aiter_raw():
                        exchange.add_body(piece)
                        body += piece
                        if len(body) > RESPONSE_LIMIT:
                            outcome.failure = f"the response has more than {RESPONSE_LIMIT} bytes"
                            break
                finally:
                    await response.aclose()
        except TimeoutError:
            outcome.failure = f"no complete response within {seconds:g} s"
            outcome.ended = "open"
        except CUT as error:
            outcome.failure = f"{type(error).__name__}: {error}".rstrip(": ")
            outcome.ended = "cut"
        else:
            outcome.ended = "end"
            if watches:
                self._connections.watch(outcome, response)
        outcome.received = bytes(body)
        outcome.body = asked.answer(outcome.status, outcome.received)
        outcome.took_ms = _elapsed_ms(started)
        return outcome

    async def open(self, request: httpx.Request, exchange: Exchange, seconds: float) -> "Stream":
        """Send a request and wait for the response head; its body can be read in the background."""
        return await Stream.begin(self._http, request, exchange, seconds)


def _record_head(outcome: StepResult, response: httpx.Response, asked: "ContractRequest") -> None:
    outcome.status = asked.status(response.status_code)
    outcome.dialect = asked.translation.dialect if asked.translation is not None else None
    outcome.headers = list(response.headers.multi_items())
    if outcome.exchange is not None:
        outcome.exchange.begin_response(response)


def _elapsed_ms(started: float) -> float:
    return round((time.perf_counter() - started) * 1e3, 3)


class Stream:
    """A response that is read in the background; `outcome` grows meanwhile."""

    def __init__(self, outcome: StepResult, started: float, asked: "ContractRequest") -> None:
        self.outcome = outcome
        self._asked = asked
        self._started = started
        self._counts: Counter[str] = Counter()
        self._changed = asyncio.Condition()
        self._reader: asyncio.Task[None] | None = None
        self._response: httpx.Response | None = None

    @classmethod
    async def begin(
        cls, http: httpx.AsyncClient, request: httpx.Request, exchange: Exchange, seconds: float
    ) -> "Stream":
        """Send a request and wait up to `seconds` for the response head."""
        asked: ContractRequest = request.extensions[_CONTRACT_REQUEST]
        started = time.perf_counter()
        outcome = StepResult(asked.label, exchange=exchange, ended="open", sent=asked.body)
        stream = cls(outcome, started, asked)
        try:
            async with time_limit(seconds):
                response = await http.send(request, stream=True)
        except TimeoutError:
            stream.outcome.failure = f"no response head within {seconds:g} s"
        except CUT as error:
            stream.outcome.failure = f"{type(error).__name__}: {error}".rstrip(": ")
            stream.outcome.ended = "cut"
        else:
            _record_head(stream.outcome, response, asked)
            stream._response = response
        stream.outcome.took_ms = _elapsed_ms(started)
        return stream

    def read(self) -> None:
        """Start to read the body in the background, unless that has begun."""
        if self._response is not None and self._reader is None:
            self._reader = asyncio.create_task(self._read(self._response))

    async def _read(self, response: httpx.Response) -> None:
        outcome = self.outcome
        body = bytearray()

        def record(piece: bytes) -> None:
            body.extend(piece)
            if outcome.exchange is not None:
                outcome.exchange.add_body(piece)
            if len(body) > STREAM_LIMIT:
                raise _TooLongError

        observe_body(response, record)
        try:
            try:
                async for event in EventSource(without_bom(response)).aiter_sse():
                    at = _elapsed_ms(self._started)
                    name, data = self._asked.event(event.event, event.data)
                    received = (event.event, event.data) if outcome.dialect else None
                    outcome.events.append(Event(name, data, event.id, at, received))
                    outcome.body = bytes(body) if len(body) <= _OPEN_BODY_LIMIT else b""
                    self._counts[name] += 1
                    await self._notify()
            except SSEError:
                await response.aread()
            outcome.ended = "end"
        except CUT as error:
            outcome.ended = "cut"
            outcome.failure = f"{type(error).__name__}: {error}".rstrip(": ")
        except _TooLongError:
            outcome.failure = f"the stream has more than {STREAM_LIMIT} bytes and does not end"
        finally:
            outcome.body = bytes(body)
            outcome.took_ms = _elapsed_ms(self._started)
            await response.aclose()
            await self._notify()

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def wait(self, event: str | None, count: int, seconds: float) -> None:
        """Wait until the stream ends, has `count` events of that name, or the time is up."""

        def is_done() -> bool:
            if self.outcome.ended != "open" or self.outcome.failure is not None:
                return True
            return event is not None and self._counts[event] >= count

        with suppress(TimeoutError):
            async with time_limit(seconds), self._changed:
                await self._changed.wait_for(is_done)

    async def close(self) -> None:
        """Close the connection, like a client that disconnects."""
        if self._reader is not None:
            self._reader.cancel()
            with suppress(asyncio.CancelledError):
                await self._reader
        if self._response is not None:
            await self._response.aclose()
