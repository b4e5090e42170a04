"""HTTP with one daemon: a pool of connections whose failures are CallErrors."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpcore
import httpx

from memconform.client.failures import (
    CallTimeoutError,
    ContractViolatedError,
    DaemonFailedError,
)
from memconform.client.recorder import Exchange, begin_exchange
from memconform.client.response_streams import observe_body
from memconform.client.responses import SizeLimit
from memconform.client.transport import Transport

RESPONSE_LIMIT = 64 * 2**20
"""Bytes of one response body. The largest legal request, a thousand chunks of 8 KiB, is 8 MiB."""

_URLS = 1_024
"""Addresses that are kept; most requests go to a few paths."""

_EXCHANGE = "memconform.exchange"
"""The response extension that holds its recorded Exchange."""

_CONNECTION_ERRORS = (httpcore.NetworkError, httpcore.ProtocolError, httpx.HTTPError)


class HttpConnection:
    """Sends requests to one daemon, and records the exchanges."""

    def __init__(
        self, base_url: str, headers: Mapping[str, str], *, connections: int, connect_s: float
    ) -> None:
        """`connect_s` is the time in seconds within which a connection must be established."""
        self._connect_s = connect_s
        self._transport = Transport(
            connections=connections, secure=base_url.lower().startswith("https:")
        )
        self._http = httpx.AsyncClient(
            base_url=base_url,
            # Uncompressed bodies need no separate limit on their decompressed size.
            headers={"Accept-Encoding": "identity", **headers},
            timeout=httpx.Timeout(None, connect=connect_s),
            transport=self._transport,
            # A proxy from the environment must not come between us and a loopback daemon.
            trust_env=False,
        )
        self._urls: dict[str, httpx.URL] = {}

    def _url(self, path: str) -> httpx.URL:
        """The address of a path, which takes httpx as long to make as the rest of a request."""
        if (url := self._urls.get(path)) is None:
            url = self._http.build_request("GET", path).url
            if len(self._urls) < _URLS:
                self._urls[path] = url
        return url

    @property
    def headers(self) -> httpx.Headers:
        """The headers of every request."""
        return self._http.headers

    async def aclose(self) -> None:
        await self._http.aclose()

    @asynccontextmanager
    async def open(
        self,
        method: str,
        path: str,
        json: Any = None,  # noqa: ANN401 - JSON
        headers: Mapping[str, str] | None = None,
        *,
        query: Mapping[str, str] | None = None,
        content: bytes | None = None,
        extensions: Mapping[str, Any] | None = None,
    ) -> AsyncIterator[httpx.Response]:
        """Send a request and yield the response once its headers arrive.

        Raises:
            CallError: if the transport fails.
        """
        where = f"{method} {path}"
        try:
            if content is not None:
                headers = {"Content-Type": "application/octet-stream", **(headers or {})}
            request = self._http.build_request(
                method,
                self._url(path),
                json=json,
                headers=headers,
                params=query,
                content=content,
            )
            request.extensions |= extensions or {}
            exchange = begin_exchange(request)
            # Not by the client, whose redirects, cookies and log nobody wants: they take 50 us.
            response = await self._transport.handle_async_request(request)
            response.request = request
            try:
                if exchange is not None:
                    exchange.begin_response(response)
                    response.extensions[_EXCHANGE] = exchange
                    observe_body(response, exchange.add_body)
                observe_body(response, SizeLimit(RESPONSE_LIMIT).count)
                yield response
            finally:
                await response.aclose()
        except httpcore.ConnectTimeout as error:
            raise CallTimeoutError(
                "timeout_connect", f"{where}: not connected within {self._connect_s:g} s"
            ) from error
        except httpcore.TimeoutException as error:
            raise CallTimeoutError("timeout", f"{where}: no data before the deadline") from error
        except httpcore.ConnectError as error:
            raise DaemonFailedError("unreachable", f"{where}: {error}") from error
        except _CONNECTION_ERRORS as error:
            raise DaemonFailedError(
                "connection_broken", f"{where}: {type(error).__name__}: {error}"
            ) from error
        if unsolicited := self._transport.take_unsolicited():
            raise ContractViolatedError(
                "out_of_step",
                f"{where}: received bytes that belong to no request, from which the next answers"
                f" would have been read: {unsolicited!r}",
            )


def recorded_exchange(response: httpx.Response) -> Exchange | None:
    """The exchange of a response, if exchanges are recorded."""
    exchange: Exchange | None = response.extensions.get(_EXCHANGE)
    return exchange
