"""Calls a memory daemon: `ask` as a stream of events, `search` and `ingest` as one response."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote

import httpx

from memory_client.errors import CallError, Kind
from memory_client.sse import Decoder

T = TypeVar("T")
_EVENTS = {
    name.encode(): name for name in ("retrieve", "answer_delta", "citation", "error", "done")
}
"""Those that the client knows, by their bytes: others need not be UTF-8."""
_ENCODINGS = frozenset({"", "identity", "gzip", "deflate"})
_PROBLEM_BYTES = 1 << 20
"""As much of an error's body is read."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event of an answer: `retrieve`, `answer_delta`, `citation` or `done`."""

    name: str
    data: dict[str, Any]


class MemoryClient:
    """A client of one daemon; use as a context.

    Args:
        base_url: the daemon's address; it may have a path and a query, which each request keeps.
        token: sent as `Authorization: Bearer`.
        idle_timeout: the longest silence of a response, in seconds.
        deadline: the longest that a call may take, with its repetitions, in seconds.
        retries: how often a call is repeated that the daemon has refused with 429 or 503 and
            `Retry-After`. Nothing else is repeated.
    """

    def __init__(
        self,
        base_url: str,
        *,
        token: str | None = None,
        idle_timeout: float = 60,
        deadline: float = 300,
        retries: int = 2,
    ) -> None:
        self._base = httpx.URL(base_url)
        self._deadline = deadline
        self._retries = retries
        headers = {"Accept-Encoding": "gzip, deflate"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        timeout = httpx.Timeout(idle_timeout, pool=None)
        self._http = httpx.AsyncClient(headers=headers, timeout=timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._http.aclose()

    async def ask(self, brain: str, request: Mapping[str, Any]) -> AsyncGenerator[Event, None]:
        """Yield the events of an answer as they come; the last one is `done`.

        Close the iterator (`contextlib.aclosing`) to end the request before.

        Raises:
            CallError: if the answer is not complete, whatever has been yielded.
        """
        end = self._end()
        async with self._response(brain, "ask", request, "text/event-stream", end) as response:
            decoder = Decoder()
            async for read in _reads(response, end):
                for raw_name, data in decoder.feed(read):
                    name = _EVENTS.get(raw_name)
                    if name is None:
                        continue
                    event = Event(name, _object(data, f"the data of {name}"))
                    if name == "error":
                        message = str(event.data.get("message"))
                        raise CallError("daemon", message, code=_code(event.data))
                    if name == "done" and event.data.get("ok") is not True:
                        raise CallError("daemon", "the answer failed")
                    yield event
                    if name == "done":
                        return
        raise CallError("cut", "the answer ended before done")

    async def search(self, brain: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the body of a search; raises CallError."""
        return await self._call(brain, "search", request)

    async def ingest(self, brain: str, document: Mapping[str, Any]) -> dict[str, Any]:
        """Store a document; raises CallError, after which it may or may not be stored."""
        return await self._call(brain, "ingest/file", document)

    async def _call(self, brain: str, route: str, request: Mapping[str, Any]) -> dict[str, Any]:
        end = self._end()
        async with self._response(brain, route, request, "application/json", end) as response:
            body = b"".join([read async for read in _reads(response, end)])
        return _object(body, "the response")

    def _end(self) -> float:
        return asyncio.get_running_loop().time() + self._deadline

    def _url(self, brain: str, route: str) -> httpx.URL:
        path, _, query = self._base.raw_path.partition(b"?")
        path = path.rstrip(b"/") + f"/v1/brains/{quote(brain, safe='')}/{route}".encode()
        return self._base.copy_with(raw_path=path + (b"?" + query if query else b""))

    @asynccontextmanager
    async def _response(
        self, brain: str, route: str, request: Mapping[str, Any], media: str, end: float
    ) -> AsyncIterator[httpx.Response]:
        """A success with the media type of its route, whose body has not been read."""
        body = json.dumps(request, ensure_ascii=False).encode()
        headers = {"Content-Type": "application/json", "Accept": media}
        for attempt in range(self._retries + 1):
            outgoing = self._http.build_request(
                "POST", self._url(brain, route), content=body, headers=headers
            )
            response = await _within(end, self._http.send(outgoing, stream=True), "connection")
            try:
                if response.is_success:
                    _require_readable(response, media)
                    yield response
                    return
                error = await _problem(response, end)
            finally:
                await response.aclose()
            delay = _retry_after(response)
            if delay is None or attempt == self._retries:
                raise error
            if asyncio.get_running_loop().time() + delay >= end:
                raise error
            await asyncio.sleep(delay)


async def _within(end: float, awaitable: Awaitable[T], broken: Kind = "cut") -> T:
    """Await until the deadline; a connection that ends is a failure of the kind `broken`."""
    try:
        async with asyncio.timeout_at(end):
            return await awaitable
    except (TimeoutError, httpx.TimeoutException) as error:
        raise CallError("timeout", "the daemon took too long") from error
    except httpx.DecodingError as error:
        raise CallError("protocol", f"the response cannot be decoded: {error}") from error
    except (httpx.ReadError, httpx.RemoteProtocolError) as error:
        raise CallError(broken, f"the connection ended: {error}") from error
    except httpx.HTTPError as error:
        raise CallError("connection", f"no response: {error}") from error


async def _reads(response: httpx.Response, end: float) -> AsyncIterator[bytes]:
    reads = response.aiter_bytes()
    while (read := await _within(end, anext(reads, None))) is not None:
        yield read


def _object(text: bytes, what: str) -> dict[str, Any]:
    try:
        value = json.loads(text.decode(), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise CallError("protocol", f"{what} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise CallError("protocol", f"{what} is not an object")
    return value


def _refuse(constant: str) -> float:
    """Refuse NaN and infinity, which are no JSON; raises ValueError."""
    raise ValueError(constant)


def _code(problem: dict[str, Any]) -> str | None:
    code = problem.get("code")
    return code if isinstance(code, str) else None


def _require_readable(response: httpx.Response, media: str) -> None:
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding not in _ENCODINGS:
        raise CallError("protocol", f"the response is encoded as {encoding!r}")
    found = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if found != media:
        raise CallError("protocol", f"the response is {found or 'of no type'}, not {media}")


async def _problem(response: httpx.Response, end: float) -> CallError:
    """The error of a response that is no success, whatever its body is."""
    status, body, code = response.status_code, b"", None
    try:
        async for read in _reads(response, end):
            body += read
            if len(body) > _PROBLEM_BYTES:
                break
        code = _code(_object(body, "the problem"))
    except CallError:
        pass  # The status says enough.
    return CallError("http", f"the daemon answered {status}", status=status, code=code)


def _retry_after(response: httpx.Response) -> float | None:
    """Seconds after which a request may be repeated that was refused; None if it may not."""
    value = response.headers.get("retry-after", "").strip()
    if response.status_code not in (429, 503) or not value:
        return None
    if value.isascii() and value.isdecimal():
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
