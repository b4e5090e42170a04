"""`python -m memconform.adapters.contract_daemon …`: an adapter served as a daemon.

So every verb measures a memory system as it measures an SDK. What it serves is the part of the
contract that a system can keep: no filters, no tuning, one way to search.
"""

import argparse
import asyncio
import base64
import hashlib
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import uvicorn
from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from memconform.adapters.item_search import Hit, ItemHits, StoredTexts, search_items
from memconform.adapters.program import (
    DEFAULT_MODEL,
    EMBED_MODEL,
    UPSTREAM,
    AdapterProgram,
    load_system,
)
from memconform.adapters.session import BATCH, AdapterSession
from memconform.client.failures import CallError
from memconform.contract.core import CreateBrain, IngestBatch, IngestFile, SearchRequest
from memconform.contract.problem import MEDIA_TYPE, STATUS
from memconform.contract.wire import CONTRACT_VERSION
from memconform.daemons.resources import RUN_ID_VARIABLE
from memconform.errors import MemconformError
from memconform.oracle.front_matter import split
from memconform.validation_faults import first_fault

_NO_ITEM = ""
"""The path of a hit that matches no document: a document's path is never empty."""
_IGNORED = ("filters", "tuning", "candidate_k", "rerank_top_n")
"""What a request must not ask for, because no adapter can do it."""
_Model = TypeVar("_Model", bound=BaseModel)
_Handler = Callable[[Request], Awaitable[Response]]


class _Problem(Exception):  # noqa: N818 - an error response
    """An error response: its kind, and what is wrong."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind


@dataclass(slots=True)
class _Brain:
    """A brain, which is a user of the adapter, and what it holds."""

    description: str | None = None
    documents: StoredTexts = field(default_factory=StoredTexts)
    """By path, without front matter; also those that are not handed over."""
    has_items: bool = False
    """Whether the adapter knows the user."""
    is_finished: bool = True
    """Whether nothing was stored since the last call of `finish`."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by each call of the adapter and what belongs to it: an adapter makes one at a time."""

    def items_of(self, hits: Sequence[Hit]) -> list[str | None]:
        """The document of each hit; raises _Problem for an id that was never stored."""
        items: list[str | None] = []
        for identifier, text, _ in hits:
            if identifier is not None and identifier not in self.documents.texts:
                what = f"a hit has the id {identifier!r}, which was never stored"
                raise _Problem("bad_gateway", what)
            items.append(self.documents.item_of(identifier, text, items))
        return items


@dataclass(slots=True)
class _ContractDaemon:
    program: AdapterProgram
    session: AdapterSession
    on_halted: Callable[[], None]
    """Called when the adapter can be called no more."""
    brains: dict[str, _Brain] = field(default_factory=dict)

    def app(self) -> Starlette:
        brain = "/v1/brains/{brain}"
        return Starlette(
            routes=[
                Route("/healthz", _health),
                Route("/version", self._version),
                Route("/v1/brains", self._handled(self._create), methods=["POST"]),
                Route(brain, self._handled(self._counts), methods=["GET"]),
                Route(brain, self._handled(self._delete), methods=["DELETE"]),
                Route(f"{brain}/ingest/file", self._handled(self._ingest_file), methods=["POST"]),
                Route(f"{brain}/ingest/batch", self._handled(self._ingest_batch), methods=["POST"]),
                Route(f"{brain}/search", self._handled(self._search), methods=["POST"]),
            ]
        )

    def _handled(self, handle: _Handler) -> _Handler:
        """The route of a handler whose errors are problem details."""

        async def handled(request: Request) -> Response:
            try:
                return await handle(request)
            except _Problem as problem:
                kind, detail = problem.kind, str(problem)
            except (CallError, MemconformError) as error:
                kind, detail = "bad_gateway", f"{error.code}: {error.message}"
            except asyncio.CancelledError:
                # The daemon is stopped in the middle of a call.
                kind, detail = "internal_error", "the daemon was stopped"
            if self.session.connection.halted is not None:
                self.on_halted()
                # No answer: a daemon that lives would be asked the next question.
                await asyncio.Event().wait()
            body = {"status": STATUS[kind], "title": kind, "detail": detail, "code": kind}
            return JSONResponse(body, STATUS[kind], media_type=MEDIA_TYPE)

        return handled

    async def _version(self, _: Request) -> Response:
        manifest = self.program.manifest
        body = {"name": manifest.name, "version": manifest.version, "contract": CONTRACT_VERSION}
        return JSONResponse(body | {"runId": os.environ.get(RUN_ID_VARIABLE, "")})

    async def _create(self, request: Request) -> Response:
        wanted = await _body(request, CreateBrain)
        if wanted.brain_id in self.brains:
            raise _Problem("conflict", f"there is a brain {wanted.brain_id!r}")
        self.brains[wanted.brain_id] = brain = _Brain(wanted.description)
        return _brain_response(wanted.brain_id, brain, 201)

    def _brain(self, request: Request) -> tuple[str, _Brain]:
        name = request.path_params["brain"]
        if (brain := self.brains.get(name)) is None:
            raise _Problem("not_found", f"there is no brain {name!r}")
        return name, brain

    async def _counts(self, request: Request) -> Response:
        """The counts, which the harness asks for after the last document."""
        name, brain = self._brain(request)
        async with brain.lock:
            await self._finish(name, brain)
        return _brain_response(name, brain, 200)

    async def _finish(self, name: str, brain: _Brain) -> None:
        if not brain.is_finished:
            await self.session.call("finish", name)
            brain.is_finished = True

    async def _delete(self, request: Request) -> Response:
        name, brain = self._brain(request)
        async with brain.lock:
            if brain.has_items:
                await self.session.call("forget", name)
            self.brains.pop(name, None)
        return Response(status_code=204)

    async def _ingest_file(self, request: Request) -> Response:
        document = await _body(request, IngestFile)
        await self._store(request, [document])
        return JSONResponse({"path": document.path})

    async def _ingest_batch(self, request: Request) -> Response:
        batch = await _body(request, IngestBatch)
        await self._store(request, batch.documents)
        return JSONResponse({"items": [{"path": each.path} for each in batch.documents]})

    async def _store(self, request: Request, documents: Sequence[IngestFile]) -> None:
        """Hand documents over; raises _Problem, and as `AdapterSession.call`."""
        name, brain = self._brain(request)
        async with brain.lock:
            rows, texts = [], dict[str, str]()
            for document in documents:
                path = document.path
                if path in brain.documents.texts or path in texts:
                    raise _Problem("conflict", f"{path} is stored, and no adapter replaces it")
                metadata, texts[path] = _read(document)
                if texts[path].strip():
                    values = (metadata.get(key) for key in ("session_id", "date"))
                    session, date = (each if isinstance(each, str) else "" for each in values)
                    rows.append([path, texts[path], "", session, date])
            for start in range(0, len(rows), BATCH):
                await self.session.call("store", name, rows[start : start + BATCH])
                brain.has_items, brain.is_finished = True, False
            brain.documents.add(texts)

    async def _search(self, request: Request) -> Response:
        """Search; raises _Problem, and as `AdapterSession.call`."""
        name, brain = self._brain(request)
        wanted = await _body(request, SearchRequest)
        for part in _IGNORED:
            if getattr(wanted, part):
                raise _Problem("validation_error", f"{part}: a memory system has none")
        async with brain.lock:
            if not brain.has_items:
                return JSONResponse({"chunks": [], "tookMs": 0})
            await self._finish(name, brain)
            found = await search_items(
                *(self.session, name, wanted.query, wanted.top_k),
                stored=len(brain.documents.texts),
                items_of=brain.items_of,
            )
        chunks = [_chunk(found, rank) for rank in found.firsts[: wanted.top_k]]
        return JSONResponse({"chunks": chunks, "tookMs": found.took_ms})


def _chunk(found: ItemHits, rank: int) -> dict[str, Any]:
    """A hit as a chunk of its document."""
    _, text, score = found.hits[rank]
    path = found.items[rank] or _NO_ITEM
    digest = hashlib.sha256(f"{path}\0{text}".encode(errors="surrogatepass")).hexdigest()
    chunk = {"chunkId": f"{digest[:16]}-{rank}", "path": path, "text": text}
    return chunk | {"score": -float(rank) if score is None else score}


def _read(document: IngestFile) -> tuple[dict[str, Any], str]:
    """The metadata and the text of a document; a hidden one has none (core.ingest.hidden).

    Raises:
        _Problem: if its content is not base64.
    """
    try:
        content = base64.b64decode(document.content_base64, validate=True)
    except ValueError as error:
        raise _Problem("validation_error", f"{document.path}: not base64") from error
    if document.path.rpartition("/")[2].startswith("_"):
        return {}, ""
    try:
        given, text = split(content.decode())
    except UnicodeDecodeError:
        return {}, ""
    return given | (document.metadata or {}), text


def _brain_response(name: str, brain: _Brain, status: int) -> Response:
    body = {"brainId": name, "documents": len(brain.documents.texts)}
    if brain.description is not None:
        body["description"] = brain.description
    return JSONResponse(body, status)


async def _health(_: Request) -> Response:
    return JSONResponse({"ok": True})


async def _body(request: Request, model: type[_Model]) -> _Model:
    """Read a body; raises _Problem if it is not a `model`."""
    try:
        return model.model_validate_json(await request.body())
    except ValidationError as error:
        raise _Problem("validation_error", first_fault(error)) from error


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser()
    for name in ("manifest", "python", "state", "host", "port"):
        parser.add_argument(f"--{name}", required=True)
    flags = parser.parse_args()
    program = load_system(Path(flags.manifest))
    session = AdapterSession.of(
        program,
        flags.python,
        # The state is a folder in it, which is dropped at the end; the log stays.
        Path(flags.state).parent,
        upstream=os.environ.get(UPSTREAM, ""),
        embed_model=os.environ.get(EMBED_MODEL) or DEFAULT_MODEL,
    )
    with asyncio.Runner() as runner:
        sys.exit(runner.run(_serve(program, session, flags.host, int(flags.port))))


async def _serve(program: AdapterProgram, session: AdapterSession, host: str, port: int) -> int:
    """Serve until SIGTERM; returns the exit code."""

    def stop() -> None:
        server.should_exit = True

    config = uvicorn.Config(
        _ContractDaemon(program, session, stop).app(),
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        server_header=False,
        # A call of the adapter in flight need not end.
        timeout_graceful_shutdown=1,
        # Otherwise uvicorn reads WEB_CONCURRENCY and FORWARDED_ALLOW_IPS.
        workers=1,
        forwarded_allow_ips=[],
    )
    server = uvicorn.Server(config)
    try:
        async with session.run():
            # The server raises the signal again that it ended by, before the adapter is stopped.
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            await server.serve()
            if session.connection.halted is not None:
                raise session.connection.halted
    except MemconformError as error:
        excerpt = f"\n{error.excerpt}" if error.excerpt else ""
        sys.stderr.write(f"{error.code}: {error.message}{excerpt}\n")
        return 1
    return 0


if __name__ == "__main__":
    main()
