"""The web application behind `memconform view`: the report, and runs as they happen.

Whoever knows the address's token may read and stop runs. Web pages of others can neither know it
nor reach the server by another name: `Host` must be a loopback address with the right port, and
requests that change something must come from the page itself.
"""

import asyncio
import hashlib
import json
import secrets
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from importlib import resources
from pathlib import Path

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from memconform.errors import MemconformError
from memconform.printing.errors import render_error
from memconform.redaction import redact_values
from memconform.reports.live.run_watch import RunWatcher

_INTERVAL = 0.5
"""Seconds between two looks at the runs."""
_HEARTBEAT = 15.0
"""Seconds after which an unchanged stream sends a comment, so that a dead client is noticed."""
_HEADERS = {
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}

WriteReport = Callable[[], bytes]
"""Renders the report of all results; raises MemconformError."""


class LocalOnly:
    """Middleware that answers only requests of the page that the token leads to."""

    def __init__(self, app: ASGIApp, *, token: str, hosts: frozenset[str]) -> None:
        self._app = app
        self._token = token
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (fault := self._fault(Request(scope))) is not None:
            await PlainTextResponse(f"{fault}\n", 403, _HEADERS)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _fault(self, request: Request) -> str | None:
        if request.headers.get("host", "").lower() not in self._hosts:
            return "this server answers to its loopback address only"
        origin = request.headers.get("origin")
        own = {f"http://{host}" for host in self._hosts}
        if origin is not None and origin not in own:
            return "requests of other pages are refused"
        # A link, such as in a web terminal, may lead here: its page cannot read what it leads to.
        navigates = request.headers.get("sec-fetch-mode") == "navigate" and request.method == "GET"
        site = request.headers.get("sec-fetch-site", "none")
        if site not in ("none", "same-origin") and not navigates:
            return "requests of other pages are refused"
        if request.method not in ("GET", "HEAD") and origin is None:
            return "a request that changes something must come from the page"
        first = request.url.path.removeprefix("/").partition("/")[0]
        if not secrets.compare_digest(first.encode(), self._token.encode()):
            return "the address lacks its token: use the one that `memconform view` printed"
        return None


def create_app(
    output: Path, write_report: WriteReport, *, token: str, hosts: frozenset[str]
) -> Starlette:
    """Create the application.

    Args:
        output: the folder of results.
        write_report: renders the report; called in a thread, for each request.
        token: the first segment of every path.
        hosts: accepted values of `Host`.
    """
    watcher = RunWatcher(output)
    live = _live_page()

    async def page(_: Request) -> Response:
        return HTMLResponse(live[0], headers=_HEADERS | {"content-security-policy": live[1]})

    async def report(_: Request) -> Response:
        try:
            content = await asyncio.to_thread(write_report)
        except MemconformError as error:
            return PlainTextResponse(render_error(error), 409, _HEADERS)
        return HTMLResponse(content, headers=_HEADERS)

    async def events(request: Request) -> Response:
        headers = _HEADERS | {"x-accel-buffering": "no"}
        stream = _snapshots(request, watcher)
        return StreamingResponse(stream, media_type="text/event-stream", headers=headers)

    async def stop(request: Request) -> Response:
        if await asyncio.to_thread(watcher.stop, request.path_params["run"]):
            return PlainTextResponse("interrupted\n", 202, _HEADERS)
        return PlainTextResponse("no process writes this run\n", 409, _HEADERS)

    return Starlette(
        routes=[
            Route(f"/{token}/", page),
            Route(f"/{token}/report.html", report),
            Route(f"/{token}/events", events),
            Route(f"/{token}/runs/{{run}}/stop", stop, methods=["POST"]),
        ],
        middleware=[Middleware(LocalOnly, token=token, hosts=hosts)],
    )


async def _snapshots(request: Request, watcher: RunWatcher) -> AsyncIterator[str]:
    """The state as events: one at once, and one for each change."""
    last, quiet = "", 0.0
    while not await request.is_disconnected():
        state = redact_values(await asyncio.to_thread(watcher.snapshot))
        text = json.dumps(state, ensure_ascii=True)
        if text != last:
            yield f"event: state\ndata: {text}\n\n"
            last, quiet = text, 0.0
        elif quiet >= _HEARTBEAT:
            yield ": still here\n\n"
            quiet = 0.0
        await asyncio.sleep(_INTERVAL)
        quiet += _INTERVAL


def _live_page() -> tuple[str, str]:
    """The page and its Content-Security-Policy."""
    folder = resources.files(__package__).joinpath("assets")
    shared = resources.files("memconform.reports.html").joinpath("assets")
    style = shared.joinpath("report.css").read_text("utf-8")
    script = shared.joinpath("base.js").read_text("utf-8")
    script += folder.joinpath("live.js").read_text("utf-8")
    page = folder.joinpath("live.html").read_text("utf-8")
    page = page.replace("/*style*/", style).replace("/*script*/", script)
    digests = [
        b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (script, style)
    ]
    policy = (
        f"default-src 'none'; script-src 'sha256-{digests[0]}'; style-src 'sha256-{digests[1]}';"
        " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return page, policy
