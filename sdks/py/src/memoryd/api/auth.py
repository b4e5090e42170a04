"""Bearer token authentication of every request except `/healthz`."""

import hmac

from starlette.types import ASGIApp, Receive, Scope, Send

from memoryd.api.respond import problem_response
from memoryd.problem import Problem

_OPEN_PATH = b"/healthz"


class TokenAuthMiddleware:
    """The outermost middleware: a rejected request is not parsed, nor its body read."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["raw_path"] == _OPEN_PATH:
            await self._app(scope, receive, send)
            return
        values = [value for name, value in scope["headers"] if name == b"authorization"]
        token = _bearer(values[0]) if len(values) == 1 else None
        if token is None:
            problem = Problem("unauthorized", "send exactly one header Authorization: Bearer TOKEN")
            response = problem_response(problem, {"WWW-Authenticate": "Bearer"})
            await response(scope, receive, send)
        elif not hmac.compare_digest(token, self._token):
            response = problem_response(Problem("forbidden", "the token is wrong"))
            await response(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def _bearer(value: bytes) -> bytes | None:
    scheme, _, token = value.strip(b" ").partition(b" ")
    return token.strip(b" ") or None if scheme.lower() == b"bearer" else None
