"""The HTTP surface: routes of the core and ask profiles, errors as problem+json."""

import base64
import binascii
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from anyio import CancelScope, create_task_group, to_thread
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.endpoints import HTTPEndpoint
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from memoryd import __version__, answering
from memoryd.brains import Brain, BrainStore, NewDocument, Stored
from memoryd.chunking import document_id
from memoryd.config import Config
from memoryd.files import canonical
from memoryd.models import Ask, CreateBrain, IngestBatch, IngestFile, Search, describe, parse
from memoryd.problems import CODES, STATUS, Problem, invalid
from memoryd.search import Found, Retriever

DECODED_LIMIT = 8 * 2**20
"""Bytes of content that one ingest request may carry."""

_BODY_LIMIT = 16 * 2**20
"""Base64 makes 8 MiB 11.2 MiB; the rest is room for titles, tags and metadata."""

_DRAIN_LIMIT = 4 * _BODY_LIMIT
"""Read and thrown away, so that a client which still sends gets to see the 413."""


_THREADS = 256

T = TypeVar("T")


def create_app(config: Config) -> Starlette:
    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        # A thread may wait for a service; waiting ones must not keep those out that search.
        to_thread.current_default_thread_limiter().total_tokens = _THREADS
        app.state.config = config
        app.state.store = BrainStore(config.home, config.providers.embedder)
        app.state.retriever = Retriever(config.query_prefix, config.providers.reranker)
        await to_thread.run_sync(app.state.store.open_all)
        yield
        app.state.store.close()
        for close in config.providers.closing:
            await close()

    brain = "/v1/brains/{brain_id}"
    app = Starlette(
        routes=[
            Route("/healthz", healthz),
            Route("/version", version),
            Route("/v1/brains", Brains),
            Route(brain, OneBrain),
            Route(f"{brain}/ingest/file", ingest_file, methods=["POST"]),
            Route(f"{brain}/ingest/batch", ingest_batch, methods=["POST"]),
            Route(f"{brain}/search", search, methods=["POST"]),
            Route(f"{brain}/ask", ask, methods=["POST"]),
        ],
        exception_handlers={
            Problem: _on_problem,
            HTTPException: _on_http_exception,
            Exception: _on_crash,
        },
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    app.add_middleware(RefuseEncodedSlash)
    return app


class RefuseEncodedSlash:
    """Answers 404 to `%2F` in a path: decoded, it would name another route than the one sent."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and b"%2f" in scope["raw_path"].lower():
            response = _problem(Problem("not_found", "an encoded slash names nothing"))
            await response(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def _json(body: dict[str, Any], status: int = 200) -> Response:
    content = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Response(content.encode("utf-8", "replace"), status, media_type="application/json")


def _problem(problem: Problem) -> Response:
    return Response(
        json.dumps(problem.body()),
        status_code=STATUS[problem.code],
        media_type="application/problem+json",
    )


async def _on_problem(_: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return _problem(error)


async def _on_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = CODES.get(error.status_code, "validation_error")
    response = _problem(Problem(code, f"{request.method} {request.url.path}: {error.detail}"))
    response.headers.update(error.headers or {})
    return response


async def _on_crash(_: Request, error: Exception) -> Response:
    return _problem(Problem("internal_error", f"{type(error).__name__}; the log says more"))


async def healthz(_: Request) -> Response:
    return _json({"ok": True})


async def version(request: Request) -> Response:
    run_id = request.app.state.config.run_id
    body = {"name": "memoryd-py", "version": __version__, "contract": "1"}
    return _json(body | ({"runId": run_id} if run_id else {}))


class Brains(HTTPEndpoint):
    async def get(self, request: Request) -> Response:
        ids = await to_thread.run_sync(_store(request).ids)
        return _json({"items": [{"brainId": brain_id} for brain_id in ids]})

    async def post(self, request: Request) -> Response:
        body = parse(CreateBrain, await _body(request))
        brain = await to_thread.run_sync(_store(request).create, body.brain_id, body.description)
        return _json(await to_thread.run_sync(_described, brain), 201)


class OneBrain(HTTPEndpoint):
    async def get(self, request: Request) -> Response:
        brain = await _brain(request)
        return _json(await to_thread.run_sync(_described, brain))

    async def delete(self, request: Request) -> Response:
        brain = await _brain(request)
        if request.headers.get("X-Confirm-Delete") != "yes":
            raise Problem("confirmation_required", "deleting a brain wants X-Confirm-Delete: yes")
        await to_thread.run_sync(_store(request).delete, brain.id)
        return Response(status_code=204)


def _described(brain: Brain) -> dict[str, Any]:
    counts = brain.counts()
    body = {
        "brainId": brain.id,
        "documents": counts.documents,
        "chunks": counts.chunks,
        "vectors": counts.vectors,
        # Every ingest is indexed before it is acknowledged.
        "pending": 0,
    }
    description = brain.description
    return body if description is None else body | {"description": description}


async def ingest_file(request: Request) -> Response:
    body = await _body(request)
    brain = await _brain(request)

    def ingest() -> list[Stored]:
        document = _document(parse(IngestFile, body))
        _refuse_over_limit([document])
        return brain.ingest([document])

    [stored] = await _unless_gone(request, ingest)
    return _json(_stored(stored))


async def ingest_batch(request: Request) -> Response:
    started = time.perf_counter()
    body = await _body(request)
    brain = await _brain(request)

    def ingest() -> list[Stored]:
        documents = [
            _batched(index, raw) for index, raw in enumerate(parse(IngestBatch, body).documents)
        ]
        _refuse_over_limit(documents)
        return brain.ingest(documents)

    stored = await _unless_gone(request, ingest)
    took = (time.perf_counter() - started) * 1e3
    return _json({"items": [_stored(item) for item in stored], "tookMs": round(took, 3)})


def _batched(index: int, raw: dict[str, Any]) -> NewDocument:
    try:
        return _document(IngestFile.model_validate(raw))
    except ValidationError as error:
        raise invalid(f"documents[{index}]: {describe(error)}") from None
    except Problem as error:
        raise invalid(f"documents[{index}]: {error.detail}") from None


def _document(body: IngestFile) -> NewDocument:
    try:
        content = base64.b64decode(body.content_base64, validate=True)
    except (binascii.Error, ValueError):
        raise invalid("contentBase64: not base64") from None
    sidecar: dict[str, Any] = {"contentType": body.content_type}
    given = {"title": body.title, "tags": body.tags, "metadata": body.metadata}
    sidecar |= {key: value for key, value in given.items() if value is not None}
    try:
        json.dumps(sidecar, allow_nan=False, ensure_ascii=False).encode()
    except ValueError as error:
        # NaN and lone surrogates: no JSON could carry them back.
        raise invalid(f"metadata: {error}") from None
    return NewDocument(canonical(body.path), content, sidecar)


def _refuse_over_limit(documents: list[NewDocument]) -> None:
    if sum(len(document.content) for document in documents) > DECODED_LIMIT:
        raise Problem("payload_too_large", f"more than {DECODED_LIMIT} bytes of content")


def _stored(stored: Stored) -> dict[str, Any]:
    return {
        "documentId": document_id(stored.path),
        "path": stored.path,
        "chunkCount": stored.chunks,
        "bytes": stored.bytes,
        "tookMs": round(stored.took_ms, 3),
    }


async def search(request: Request) -> Response:
    started = time.perf_counter()
    raw = await _body(request)
    brain = await _brain(request)
    body = parse(Search, raw)
    found = await _found(request, brain, body.query, body)
    took = (time.perf_counter() - started) * 1e3
    return _json({"chunks": found.chunks, "tookMs": round(took, 3), "trace": found.trace})


async def ask(request: Request) -> Response:
    raw = await _body(request)
    brain = await _brain(request)
    body = parse(Ask, raw)
    reader = request.app.state.config.providers.reader
    if reader is None:
        raise Problem("bad_gateway", "no reader: start the daemon with JB_LLM_PROVIDER set")
    found = await _found(request, brain, body.question, body)
    return StreamingResponse(
        answering.events(reader, body, found),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store"},
    )


async def _found(request: Request, brain: Brain, query: str, body: Search | Ask) -> Found:
    retriever: Retriever = request.app.state.retriever
    return await _unless_gone(request, lambda: retriever.retrieve(brain, query, body.top_k, body))


async def _unless_gone(request: Request, work: Callable[[], T]) -> T:
    """What `work` gives, in a thread; a client that leaves ends the calls that it makes."""

    async def watch(scope: CancelScope) -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        scope.cancel()

    done: list[T] = []
    failure: Exception | None = None
    # A scope of anyio's, for only its cancellation reaches what the thread has the event loop do.
    async with create_task_group() as group:
        group.start_soon(watch, group.cancel_scope)
        try:
            done.append(await to_thread.run_sync(work, abandon_on_cancel=True))
        except Exception as error:  # noqa: BLE001 - raised below, out of the group's wrapping
            failure = error
        group.cancel_scope.cancel()
    if failure is not None:
        raise failure
    if not done:
        raise Problem("internal_error", "the client has gone")
    return done[0]


def _store(request: Request) -> BrainStore:
    store: BrainStore = request.app.state.store
    return store


async def _brain(request: Request) -> Brain:
    return await to_thread.run_sync(_store(request).get, request.path_params["brain_id"])


async def _body(request: Request) -> bytes:
    body, size = bytearray(), 0
    async for piece in request.stream():
        size += len(piece)
        if size <= _BODY_LIMIT:
            body += piece
        elif size > _DRAIN_LIMIT:
            break
    if size > _BODY_LIMIT:
        raise Problem("payload_too_large", f"more than {_BODY_LIMIT} bytes of body")
    return bytes(body)
