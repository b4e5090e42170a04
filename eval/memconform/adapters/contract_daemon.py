"""`python -m memconform.adapters.contract_daemon …`: an adapter served as a daemon.

So every verb measures a memory system as it measures an SDK. What it serves is the part of the
contract that a system can keep: no filters, no tuning, one way to search.
"""

import argparse
import asyncio
import base64
import os
import signal
import sys
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
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
NO_ITEM = "-"
"""The path of a hit that is no item's."""
_Model = TypeVar("_Model", bound=BaseModel)


class _Problem(Exception):  # noqa: N818 - an error response
    """An error response: its kind, and what is wrong."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind


@dataclass(slots=True)
class _User:
    """What one brain holds."""

    description: str | None = None
    texts: dict[str, str] = field(default_factory=dict)
    """By path, without front matter."""
    is_finished: bool = True
    """Whether nothing was stored since the last call of `finish`."""
    _by_text: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def add(self, texts: Mapping[str, str]) -> None:
        """Take what the adapter has stored, by path."""
        self.texts.update(texts)
        for path, text in texts.items():
            self._by_text[text].append(path)
        self.is_finished = False

    def path_of(self, identifier: str | None, text: str, taken: Sequence[str]) -> str:
        """The path of a hit: by its id, otherwise by its exact text, which is never guessed."""
        if identifier is not None:
            if identifier not in self.texts:
                raise _Problem(
                    "bad_gateway", f"a hit has the id {identifier!r}, which was never stored"
                )
            return identifier
        candidates = self._by_text.get(text, ())
        return next((path for path in candidates if path not in taken), NO_ITEM)


@dataclass(slots=True)
class _ContractDaemon:
    session: AdapterSession
    users: dict[str, _User] = field(default_factory=dict)

    def app(self) -> Starlette:
        brain = "/v1/brains/{brain}"
        return Starlette(
            routes=[
                Route("/healthz", _health),
                Route("/v1/brains", _handled(self._create), methods=["POST"]),
                Route(brain, _handled(self._brain), methods=["GET"]),
                Route(brain, _handled(self._delete), methods=["DELETE"]),
                Route(f"{brain}/ingest/file", _handled(self._ingest_file), methods=["POST"]),
                Route(f"{brain}/ingest/batch", _handled(self._ingest_batch), methods=["POST"]),
                Route(f"{brain}/search", _handled(self._search), methods=["POST"]),
            ]
        )

    async def _create(self, request: Request) -> Response:
        asked = await _body(request, CreateBrain)
        if asked.brain_id in self.users:
            raise _Problem("conflict", f"there is a brain {asked.brain_id!r}")
        self.users[asked.brain_id] = _User(asked.description)
        return _shown(asked.brain_id, self.users[asked.brain_id], 201)

    def _user(self, request: Request) -> tuple[str, _User]:
        name = request.path_params["brain"]
        if (user := self.users.get(name)) is None:
            raise _Problem("not_found", f"there is no brain {name!r}")
        return name, user

    async def _brain(self, request: Request) -> Response:
        """Its counts, which the harness asks for after the last document."""
        name, user = self._user(request)
        await self._finish(name, user)
        return _shown(name, user, 200)

    async def _finish(self, name: str, user: _User) -> None:
        if not user.is_finished:
            await self.session.call("finish", name)
            user.is_finished = True

    async def _delete(self, request: Request) -> Response:
        name, user = self._user(request)
        if user.texts:
            await self.session.call("forget", name)
        del self.users[name]
        return Response(status_code=204)

    async def _ingest_file(self, request: Request) -> Response:
        body = await _body(request, IngestFile)
        await self._store(request, [body])
        return JSONResponse(_acknowledged(body))

    async def _ingest_batch(self, request: Request) -> Response:
        body = await _body(request, IngestBatch)
        await self._store(request, body.documents)
        return JSONResponse({"items": [_acknowledged(each) for each in body.documents]})

    async def _store(self, request: Request, documents: Sequence[IngestFile]) -> None:
        name, user = self._user(request)
        rows, texts = [], dict[str, str]()
        for document in documents:
            if document.path in user.texts or document.path in texts:
                raise _Problem("conflict", f"{document.path} is stored, and no adapter replaces")
            metadata, text = _read(document)
            texts[document.path] = text
            if text.strip():
                values = (metadata.get(key) for key in ("session_id", "date"))
                session, date = (each if isinstance(each, str) else "" for each in values)
                rows.append([document.path, text, "", session, date])
        for start in range(0, len(rows), BATCH):
            await self.session.call("store", name, rows[start : start + BATCH])
        user.add(texts)

    async def _search(self, request: Request) -> Response:
        name, user = self._user(request)
        asked = await _body(request, SearchRequest)
        for part in ("filters", "tuning"):
            if getattr(asked, part) is not None:
                raise _Problem("validation_error", f"{part}: a memory system has none")
        if not user.texts:
            return JSONResponse({"chunks": []})
        await self._finish(name, user)
        reply = await self.session.call("search", name, asked.query, asked.top_k)
        chunks: list[dict[str, Any]] = []
        for rank, (identifier, text, score) in enumerate(reply["hits"][: asked.top_k]):
            path = user.path_of(identifier, text, [chunk["path"] for chunk in chunks])
            shown = -float(rank) if score is None else score
            chunks.append({"chunkId": f"{path}#{rank}", "path": path, "score": shown, "text": text})
        return JSONResponse({"chunks": chunks})


def _read(document: IngestFile) -> tuple[dict[str, Any], str]:
    """The metadata and the text of a document; raises _Problem for bytes that are no text."""
    try:
        given, text = split(base64.b64decode(document.content_base64).decode())
    except ValueError as error:
        raise _Problem("validation_error", f"{document.path}: not UTF-8 in base64") from error
    return given | (document.metadata or {}), text


def _acknowledged(document: IngestFile) -> dict[str, str]:
    return {"path": document.path}


def _shown(name: str, user: _User, status: int) -> Response:
    body = {"brainId": name, "documents": len(user.texts)}
    if user.description is not None:
        body["description"] = user.description
    return JSONResponse(body, status)


async def _health(_: Request) -> Response:
    return JSONResponse({"ok": True})


async def _body(request: Request, model: type[_Model]) -> _Model:
    try:
        return model.model_validate_json(await request.body())
    except ValidationError as error:
        raise _Problem("validation_error", first_fault(error)) from error


def _handled(
    handle: Callable[[Request], Awaitable[Response]],
) -> Callable[[Request], Awaitable[Response]]:
    """The route of a handler whose errors are problem details."""

    async def handled(request: Request) -> Response:
        try:
            return await handle(request)
        except _Problem as problem:
            kind, detail = problem.kind, str(problem)
        except (CallError, MemconformError) as error:
            kind, detail = "bad_gateway", f"{error.code}: {error.message}"
        body = {"status": STATUS[kind], "title": kind, "detail": detail, "code": kind}
        return JSONResponse(body, STATUS[kind], media_type=MEDIA_TYPE)

    return handled


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser()
    for name in ("manifest", "python", "folder", "host", "port", "upstream"):
        parser.add_argument(f"--{name}", required=True)
    flags = parser.parse_args()
    session = AdapterSession.of(
        load_system(Path(flags.manifest)),
        flags.python,
        Path(flags.folder),
        upstream=flags.upstream,
        embed_model=os.environ.get(EMBED_MODEL) or DEFAULT_MODEL,
    )
    with asyncio.Runner() as runner:
        sys.exit(runner.run(_serve(session, flags.host, int(flags.port))))


async def _serve(session: AdapterSession, host: str, port: int) -> int:
    """Serve until SIGTERM; returns the exit code."""
    config = uvicorn.Config(
        _ContractDaemon(session).app(),
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
    try:
        async with session.run():
            # The server raises the signal again that it ended by, before the adapter is stopped.
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            await uvicorn.Server(config).serve()
    except MemconformError as error:
        excerpt = f"\n{error.excerpt}" if error.excerpt else ""
        sys.stderr.write(f"{error.code}: {error.message}{excerpt}\n")
        return 1
    return 0


if __name__ == "__main__":
    main()
