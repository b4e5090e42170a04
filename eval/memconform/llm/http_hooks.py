"""Hooks of the vendors' HTTP clients: whether a request was sent, and how large a reply may be.

A reservation for a request that never left this machine is given back. The name of an exception
does not say whether it did: the same timeout occurs before the first byte and after the last one.
"""

import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

_MAX_BODY = 4 << 20
_MAX_ENCODED = 256 << 10
"""Bytes of a reply, as sent; gzip makes up to a thousand of one."""


@dataclass(slots=True)
class Transmission:
    """How far the request of one attempt came."""

    observed: bool = False
    """Whether the client reports it; one that does not may have sent anything."""
    tried: bool = False
    """Whether the network was used, if only to connect."""
    sent: bool = False
    """Whether the client began to write the body. No service can charge for headers alone."""
    connected: bool = False
    """Whether a connection was made, to the service or to the proxy before it."""
    tunnelled: bool = False
    """Whether a proxy agreed to open a tunnel to the service."""
    proxy: str = ""
    """The proxy before the service, if there is one."""

    @property
    def may_cost(self) -> bool:
        """Whether a service may charge for the attempt."""
        return self.sent or not self.observed

    def begin(self, proxy: str = "") -> None:
        """Note that a request is about to be made by a client that has `EVENT_HOOKS`."""
        self.proxy = proxy
        self.observed, self.tried, self.sent = True, False, False
        self.connected = self.tunnelled = False

    def timeout_message(self, name: object) -> str:
        """What a model did not do in time; a proxy may have held back what it answered."""
        way = f"; it is asked by way of the proxy {self.proxy}" if self.proxy else ""
        if self.may_cost:
            return f"{name} did not answer in time{way}"
        return f"no connection to {name} was made in time{way}"

    async def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Take an event of httpcore's `trace` extension."""
        self.tried = True
        self.connected |= event == "connection.connect_tcp.complete"
        self.tunnelled |= event in ("proxy.start_tls.started", "socks.start_tls.started")
        # A proxy gets a request of its own before the tunnel to the service stands.
        is_tunnel = getattr(info.get("request"), "method", b"") == b"CONNECT"
        if event.endswith("send_request_body.started") and not is_tunnel:
            self.sent = True


_current: ContextVar[Transmission | None] = ContextVar("transmission", default=None)


@contextmanager
def track_transmission() -> Iterator[Transmission]:
    """Observe the request that the block makes."""
    transmission = Transmission()
    token = _current.set(transmission)
    try:
        yield transmission
    finally:
        _current.reset(token)


def current_transmission() -> Transmission:
    """The one that `track_transmission` opened, or one that nobody reads."""
    return _current.get() or Transmission()


async def _observe(request: Any) -> None:  # noqa: ANN401 - of httpx, or what a vendor uses
    request.extensions["trace"] = current_transmission().trace


class _TooLargeError(ValueError):
    """A reply has more bytes than any reply needs."""


async def _limit_body(response: Any) -> None:  # noqa: ANN401 - of httpx, or what a vendor uses
    """End a reply that is larger than any reply needs, before it fills the memory."""
    library = sys.modules[type(response).__module__.partition(".")[0]]
    source = response.stream
    most = _MAX_ENCODED if "content-encoding" in response.headers else _MAX_BODY

    class Limited(library.AsyncByteStream):  # type: ignore[misc,name-defined] # known at run time
        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for chunk in source:
                size += len(chunk)
                if size > most:
                    raise _TooLargeError(f"more than {most} bytes")
                yield chunk

        async def aclose(self) -> None:
            await source.aclose()

    response.stream = Limited()


EVENT_HOOKS: dict[str, list[Callable[..., Any]]] = {
    "request": [_observe],
    "response": [_limit_body],
}
"""Every client of a model service has them; without them what was not sent would be charged."""
