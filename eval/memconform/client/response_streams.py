"""Filters between httpx's byte stream and its readers."""

import codecs
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing

import httpx
from httpx_sse import EventSource, ServerSentEvent


class _ObservedStream(httpx.AsyncByteStream):
    """Passes every piece to `listen` before the reader gets it."""

    def __init__(self, inner: httpx.AsyncByteStream, listen: Callable[[bytes], None]) -> None:
        self._inner = inner
        self._listen = listen

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._inner:
            self._listen(piece)
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()


class _BomStrippedStream(httpx.AsyncByteStream):
    """Drops a leading UTF-8 byte order mark, which the event-stream rules allow."""

    def __init__(self, inner: httpx.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        head = b""
        checked = False
        async for piece in self._inner:
            if checked:
                yield piece
                continue
            head += piece
            if len(head) < len(codecs.BOM_UTF8) and codecs.BOM_UTF8.startswith(head):
                continue
            checked = True
            yield head.removeprefix(codecs.BOM_UTF8)
        if not checked and head:
            yield head

    async def aclose(self) -> None:
        await self._inner.aclose()


def observe_body(response: httpx.Response, listen: Callable[[bytes], None]) -> None:
    """Pass the body of `response` to `listen` as it arrives, still content-encoded."""
    response.stream = _ObservedStream(_async_stream(response), listen)


def without_bom(response: httpx.Response) -> httpx.Response:
    """Make `response` readable as UTF-8 without a byte order mark, and return it.

    httpx-sse keeps the mark and would read it as part of the first field's name.
    """
    response.stream = _BomStrippedStream(_async_stream(response))
    # An event stream is UTF-8 whatever its charset parameter claims.
    response.encoding = "utf-8"
    return response


def _async_stream(response: httpx.Response) -> httpx.AsyncByteStream:
    if not isinstance(response.stream, httpx.AsyncByteStream):
        raise TypeError("the response must come from an async client")
    return response.stream


async def dispatched_events(response: httpx.Response) -> AsyncGenerator[ServerSentEvent, None]:
    """Yield the events that the event-stream rules dispatch."""
    async with aclosing(EventSource(without_bom(response)).aiter_sse()) as events:
        async for event in events:
            # By the event-stream rules an event without data is not dispatched; httpx-sse 0.4.3
            # yields such an event once an id has been seen.
            if event.data:
                yield event
