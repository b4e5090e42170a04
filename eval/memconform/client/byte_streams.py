"""What stands between httpx's byte stream and its readers."""

import codecs
from collections.abc import AsyncIterator, Callable

import httpx


class _Tapped(httpx.AsyncByteStream):
    """Hands every piece to `listen` as it passes."""

    def __init__(self, inner: httpx.AsyncByteStream, listen: Callable[[bytes], None]) -> None:
        self._inner = inner
        self._listen = listen

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._inner:
            self._listen(piece)
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()


class _WithoutBom(httpx.AsyncByteStream):
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
    """Let `listen` see the body of `response` as it comes over the wire."""
    response.stream = _Tapped(_async_stream(response), listen)


def without_bom(response: httpx.Response) -> httpx.Response:
    """The same response, to be read as UTF-8 without a byte order mark.

    httpx-sse keeps the mark and would read the first field's name with it.
    """
    response.stream = _WithoutBom(_async_stream(response))
    # A stream of events is UTF-8 whatever its charset parameter claims.
    response.encoding = "utf-8"
    return response


def _async_stream(response: httpx.Response) -> httpx.AsyncByteStream:
    if not isinstance(response.stream, httpx.AsyncByteStream):
        raise TypeError("an async response is needed")
    return response.stream
