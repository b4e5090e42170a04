"""The HTTP application: routes, middleware and error handling."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from memoryd.api import ask, batch, brains, documents, events, ingest, search
from memoryd.api.auth import TokenAuthMiddleware
from memoryd.api.origin import OriginMiddleware
from memoryd.api.respond import NO_STORE, problem_response
from memoryd.api.stream import Streams
from memoryd.brain.store import BrainStore
from memoryd.config import Config
from memoryd.daemon.providers import Providers, create_providers
from memoryd.problem import CODES, Problem
from memoryd.retrieve.retrieve import Retriever

_THREADS = 256

_log = logging.getLogger(__name__)

_BRAIN = "/v1/brains/{brain_id}"


def create_app(
    config: Config,
    providers: Providers | None = None,
    streams: Streams | None = None,
    *,
    loopback: bool = False,
) -> Starlette:
    """Create the application.

    `providers` are by default those that `config` selects; `streams` collects its open streams, for
    the server to end; `loopback` says whether the server listens on a loopback address.
    """

    providers = providers or create_providers(config)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        # Threads may wait for a service; enough must be left for searches.
        to_thread.current_default_thread_limiter().total_tokens = _THREADS
        app.state.config = config
        app.state.reader = providers.reader
        # Apart from the default, so that work which waits for a service does not hold up reads.
        app.state.work_slots = CapacityLimiter(_THREADS)
        app.state.streams = streams or Streams()
        app.state.store = BrainStore(config.home, providers.embedder)
        app.state.retriever = Retriever(config.query_prefix, providers.reranker)
        await to_thread.run_sync(app.state.store.open_all)
        yield
        app.state.store.close()
        for close in providers.close_hooks:
            await close()

    app = Starlette(
        routes=[
            # Routes are tried in turn: the one that is requested most comes first.
            Route(f"{_BRAIN}/search", search.search, methods=["POST"]),
            Route("/healthz", brains.healthz),
            Route("/version", brains.version),
            Route("/v1/brains", brains.BrainsEndpoint),
            Route(_BRAIN, brains.BrainEndpoint),
            Route(f"{_BRAIN}/ingest/file", ingest.ingest_file, methods=["POST"]),
            Route(f"{_BRAIN}/ingest/batch", ingest.ingest_batch, methods=["POST"]),
            Route(f"{_BRAIN}/ask", ask.ask, methods=["POST"]),
            Route(f"{_BRAIN}/documents", documents.Documents),
            Route(f"{_BRAIN}/documents/read", documents.read),
            Route(f"{_BRAIN}/documents/stat", documents.stat),
            Route(f"{_BRAIN}/documents/append", documents.append, methods=["POST"]),
            Route(f"{_BRAIN}/documents/rename", documents.rename, methods=["POST"]),
            Route(f"{_BRAIN}/documents/batch-ops", batch.batch_ops, methods=["POST"]),
            _get_only(Route(f"{_BRAIN}/events", events.events)),
        ],
        exception_handlers={
            Problem: _on_problem,
            HTTPException: _on_http_exception,
            OSError: _on_storage_error,
            Exception: _on_crash,
        },
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    app.add_middleware(EncodedSlashMiddleware)
    if config.auth_token is not None:
        app.add_middleware(TokenAuthMiddleware, token=config.auth_token)
    elif loopback:
        app.add_middleware(OriginMiddleware)
    return app


def _get_only(route: Route) -> Route:
    """Starlette also routes HEAD to GET, but the response to HEAD of a stream would never end."""
    route.methods = {"GET"}
    return route


class EncodedSlashMiddleware:
    """Answers 404 to `%2F` in a path: decoded, it would match another route."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and b"%2f" in scope["raw_path"].lower():
            response = problem_response(Problem("not_found", "no route has an encoded slash"))
            await response(scope, receive, send)
        else:
            await self._app(scope, receive, send)


async def _on_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return problem_response(error, NO_STORE if _is_uncacheable(request) else None)


def _is_uncacheable(request: Request) -> bool:
    """Whether a response must not be cached: reads of documents, failed ones too."""
    brain = request.path_params.get("brain_id", "")
    below = request.url.path.removeprefix(f"/v1/brains/{brain}")
    return request.method in ("GET", "HEAD") and below.startswith("/documents")


async def _on_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = CODES.get(error.status_code, "validation_error")
    problem = Problem(code, f"{request.method} {request.url.path}: {error.detail}")
    return problem_response(problem, error.headers)


async def _on_storage_error(request: Request, error: Exception) -> Response:
    """A full disk, say. Not a crash, after which the server would close the connection."""
    _log.error("%s %s", request.method, request.url.path, exc_info=error)
    return problem_response(Problem("internal_error", f"the state cannot be accessed: {error}"))


async def _on_crash(_: Request, error: Exception) -> Response:
    return problem_response(
        Problem("internal_error", f"{type(error).__name__}; see the daemon's log")
    )
