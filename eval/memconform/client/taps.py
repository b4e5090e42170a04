"""What stands between httpx's byte stream and the event reader."""

import codecs
from collections.abc import AsyncIterator

import httpx


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


def without_bom(response: httpx.Response) -> httpx.Response:
    """The same response, to be read as UTF-8 without a byte order mark.

    httpx-sse keeps the mark and would read the first field's name with it.
    """
    if not isinstance(response.stream, httpx.AsyncByteStream):
        raise TypeError("an async response is needed")
    response.stream = _WithoutBom(response.stream)
    # A stream of events is UTF-8 whatever its charset parameter claims.
    response.encoding = "utf-8"
    return response
