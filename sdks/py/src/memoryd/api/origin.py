"""Rejects requests that a web page from elsewhere causes.

A page can make a browser send requests to a daemon on the same machine, and by DNS rebinding under
a host name of the page's own. A token would stop it; without one, these headers do, which a page
cannot choose.
"""

import re

from starlette.types import ASGIApp, Receive, Scope, Send

from memoryd.api.respond import problem_response
from memoryd.problem import Problem

_OCTET = rb"(?:25[0-5]|(?:2[0-4]|1[0-9]|[1-9])?[0-9])"

_LOOPBACK = rb"(?:localhost|127(?:\." + _OCTET + rb"){3}|\[::1\])(?::[0-9]{0,5})?"

_HOST = re.compile(_LOOPBACK, re.IGNORECASE)

_ORIGIN = re.compile(rb"https?://" + _LOOPBACK, re.IGNORECASE)


class OriginMiddleware:
    """The outermost middleware of a daemon without a token that listens on loopback."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reason = _foreignness(scope["headers"]) if scope["type"] == "http" else None
        if reason is None:
            await self._app(scope, receive, send)
            return
        problem = Problem("forbidden", f"{reason}; set a token to allow such requests")
        await problem_response(problem)(scope, receive, send)


def _foreignness(headers: list[tuple[bytes, bytes]]) -> str | None:
    """Why a request may be from a web page from elsewhere; None if it is not."""

    def values(name: bytes) -> list[bytes]:
        # The server leaves white space after a value.
        return [value.strip(b" \t") for key, value in headers if key == name]

    hosts, origins = values(b"host"), values(b"origin")
    if len(hosts) != 1 or not _HOST.fullmatch(hosts[0]):
        return "the Host is not loopback"
    if not all(map(_ORIGIN.fullmatch, origins)):
        return "the Origin is not loopback"
    if not origins and b"cross-site" in values(b"sec-fetch-site"):
        return "the request is cross-site"
    return None
