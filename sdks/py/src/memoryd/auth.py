"""The daemon's token, wanted of every request but one for its health."""

import hmac

from starlette.types import ASGIApp, Receive, Scope, Send

from memoryd.problems import Problem
from memoryd.responses import problem_response

_FREE = b"/healthz"


class Authenticate:
    """Outermost, so that a request that is refused is not looked at, nor its body read."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["raw_path"] == _FREE:
            await self._app(scope, receive, send)
            return
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        token = _bearer(given[0]) if len(given) == 1 else None
        if token is None:
            problem = Problem(
                "unauthorized", "Authorization: Bearer and the token are wanted, once"
            )
            response = problem_response(problem, {"WWW-Authenticate": "Bearer"})
            await response(scope, receive, send)
        elif not hmac.compare_digest(token, self._token):
            response = problem_response(Problem("forbidden", "this is not the token"))
            await response(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def _bearer(value: bytes) -> bytes | None:
    scheme, _, token = value.strip(b" ").partition(b" ")
    return token.strip(b" ") or None if scheme.lower() == b"bearer" else None
