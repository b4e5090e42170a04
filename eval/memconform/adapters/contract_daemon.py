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
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import uvicorn
from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from memconform.adapters.program import load_system
from memconform.adapters.session import BATCH, AdapterSession
from memconform.client.failures import CallError
from memconform.contract.core import CreateBrain, IngestBatch, IngestFile, SearchRequest
from memconform.contract.problem import MEDIA_TYPE, STATUS
from memconform.errors import MemconformError
from memconform.oracle.front_matter import split
from memconform.validation_faults import first_fault

EMBED_MODEL = "JB_EMBED_MODEL"
"""The variable that names the embedding model of the scripted upstream."""
DEFAULT_MODEL = "fh256-1"
_NO_ITEM = ""
"""The path of a hit that is no document's; no document can have it."""
_IGNORED = ("filters", "tuning", "candidate_k", "rerank_top_n")
"""What a request must not ask for, because no adapter can do it."""
_MOST_ASKED = 16
"""How many times more hits than documents are asked for, of a system that stores them in pieces."""
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
    texts: dict[str, str] = field(default_factory=dict)
    """By path, without front matter; also those that are not handed over."""
    has_items: bool = False
    """Whether the adapter knows the user."""
    is_finished: bool = True
    """Whether nothing was stored since the last call of `finish`."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by each call of the adapter and what belongs to it: an adapter makes one at a time."""
    _by_text: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def add(self, texts: Mapping[str, str]) -> None:
        """Add documents, by path."""
        self.texts.update(texts)
        for path, text in texts.items():
            self._by_text[text].append(path)

    def path_of(self, identifier: str | None, text: str, taken: Collection[str]) -> str:
        """The path of a hit: by its id, otherwise by its exact text, which is never guessed."""
        if identifier is not None:
            if identifier not in self.texts:
                raise _Problem(
                    "bad_gateway", f"a hit has the id {identifier!r}, which was never stored"
                )
            return identifier
        candidates = self._by_text.get(text, ())
        return next((path for path in candidates if path not in taken), _NO_ITEM)


@dataclass(slots=True)
class _ContractDaemon:
    session: AdapterSession
    on_halted: Callable[[], None]
    """Called when the adapter can be called no more."""
    brains: dict[str, _Brain] = field(default_factory=dict)

    def app(self) -> Starlette:
        brain = "/v1/brains/{brain}"
        return Starlette(
            routes=[
                Route("/healthz", _health),
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
                if path in brain.texts or path in texts:
                    raise _Problem("conflict", f"{path} is stored, and no adapter replaces it")
                metadata, texts[path] = _read(document)
                if texts[path].strip():
                    values = (metadata.get(key) for key in ("session_id", "date"))
                    session, date = (each if isinstance(each, str) else "" for each in values)
                    rows.append([path, texts[path], "", session, date])
            for start in range(0, len(rows), BATCH):
                await self.session.call("store", name, rows[start : start + BATCH])
                brain.has_items, brain.is_finished = True, False
            brain.add(texts)

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
            asked = wanted.top_k
            while True:
                reply = await self.session.call("search", name, wanted.query, asked)
                chunks = _chunks(brain, reply["hits"][:asked])
                is_all = len(chunks) >= min(wanted.top_k, len(brain.texts))
                if is_all or len(reply["hits"]) < asked or asked >= _MOST_ASKED * wanted.top_k:
                    break
                asked *= 2
        return JSONResponse({"chunks": chunks[: wanted.top_k], "tookMs": reply["took_ms"]})


def _chunks(brain: _Brain, hits: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    """The hits as chunks, those of one document once, at the first; raises _Problem."""
    chunks: list[dict[str, Any]] = []
    taken: set[str] = set()
    for rank, (identifier, text, score) in enumerate(hits):
        path = brain.path_of(identifier, text, taken)
        if path != _NO_ITEM and path in taken:
            continue
        taken.add(path)
        digest = hashlib.sha256(f"{path}\0{text}".encode(errors="surrogatepass")).hexdigest()
        chunk = {"chunkId": f"{digest[:16]}-{rank}", "path": path, "text": text}
        chunks.append(chunk | {"score": -float(rank) if score is None else score})
    return chunks


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
    body = {"brainId": name, "documents": len(brain.texts)}
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
    for name in ("manifest", "python", "state", "host", "port", "upstream"):
        parser.add_argument(f"--{name}", required=True)
    flags = parser.parse_args()
    session = AdapterSession.of(
        load_system(Path(flags.manifest)),
        flags.python,
        # The state is a folder in it, which is dropped at the end; the log stays.
        Path(flags.state).parent,
        upstream=flags.upstream,
        embed_model=os.environ.get(EMBED_MODEL) or DEFAULT_MODEL,
    )
    with asyncio.Runner() as runner:
        sys.exit(runner.run(_serve(session, flags.host, int(flags.port))))


async def _serve(session: AdapterSession, host: str, port: int) -> int:
    """Serve until SIGTERM; returns the exit code."""

    def stop() -> None:
        server.should_exit = True

    config = uvicorn.Config(
        _ContractDaemon(session, stop).app(),
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
