"""Daemons that answer without doing anything, which no conformance case may mistake for a good one.

Each kind does part of what a case needs before its checks, and gives everything else one answer.
"""

import asyncio
import base64
import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from memconform.bench.raw_http import RawExchange, RawRequest, serving
from memconform.contract.problem import STATUS
from memconform.contract.wire import JsonValue, Mode, Profile
from memconform.daemons.kinds import UpstreamKind
from memconform.daemons.process import DaemonProcess
from memconform.daemons.resources import Resources
from memconform.daemons.sdk_runner import Daemon, Launch, SdkRunner

_BRAIN = re.compile(r"/v1/brains/([^/]+)(/.*)?")


@dataclass(frozen=True, slots=True)
class Degeneracy:
    """What a degenerate daemon does right, and what it answers to everything else."""

    answer: str
    """`empty` for an empty object, `nothing` for a success without content where the contract has a
    list, or a problem's code."""
    health: bool = True
    brains: bool = True
    """Whether it creates, describes and deletes brains."""
    acknowledges: bool = True
    """Whether it acknowledges what it is given to store."""
    stores: bool = True
    """Whether it counts and returns what it has acknowledged."""


@dataclass(slots=True)
class _Brain:
    documents: dict[str, bytes] = field(default_factory=dict)


class DegenerateDaemon:
    """Serves a degeneracy from memory."""

    def __init__(self, degeneracy: Degeneracy) -> None:
        self._is = degeneracy
        self._brains: dict[str, _Brain] = {}

    async def answer(self, request: RawRequest, exchange: RawExchange) -> None:
        """Do what this daemon does right, or else give its one answer."""
        url = urlsplit(request.path)
        for handled in (self._answer_health, self._answer_brains, self._answer_documents):
            response = handled(request, url.path, parse_qs(url.query, keep_blank_values=True))
            if response is not None:
                await _reply(exchange, request, *response)
                return
        await _reply(exchange, request, *self._one_answer(url.path))

    def _one_answer(self, path: str) -> tuple[int, Any]:
        if self._is.answer == "empty":
            return 200, {}
        if self._is.answer == "nothing":
            return _NOTHING.get(path.rpartition("/")[2], (204, None))
        answer = self._is.answer
        status = STATUS[answer]
        return status, {"status": status, "title": answer, "detail": answer, "code": answer}

    def _answer_health(
        self, request: RawRequest, path: str, _: Mapping[str, Sequence[str]]
    ) -> tuple[int, Any] | None:
        if request.method != "GET" or not self._is.health:
            return None
        if path == "/healthz":
            return 200, {"ok": True}
        if path == "/version":
            return 200, {"name": "degenerate", "version": "1", "contract": "1"}
        return None

    def _answer_brains(
        self, request: RawRequest, path: str, _: Mapping[str, Sequence[str]]
    ) -> tuple[int, Any] | None:
        if not self._is.brains:
            return None
        if (request.method, path) == ("POST", "/v1/brains"):
            brain = _json(request).get("brainId")
            if not isinstance(brain, str):
                return None
            self._brains[brain] = _Brain()
            return 201, self._describe(brain)
        match = _BRAIN.fullmatch(path)
        response: tuple[int, Any] | None = None
        if match is not None and not match[2] and match[1] in self._brains:
            if request.method == "GET":
                response = 200, self._describe(match[1])
            elif request.method == "DELETE" and "x-confirm-delete" in request.headers:
                del self._brains[match[1]]
                response = 204, None
        return response

    def _describe(self, brain: str) -> dict[str, Any]:
        count = len(self._brains[brain].documents)
        return {"brainId": brain, "documents": count, "chunks": count, "vectors": 0, "pending": 0}

    def _answer_documents(
        self, request: RawRequest, path: str, query: Mapping[str, Sequence[str]]
    ) -> tuple[int, Any] | None:
        match = _BRAIN.fullmatch(path)
        if match is None or match[1] not in self._brains or not self._is.acknowledges:
            return None
        brain, name = self._brains[match[1]], unquote("".join(query.get("path", [])[:1]))
        try:
            match request.method, match[2]:
                case "POST", "/ingest/file":
                    return 200, {**self._ingest(brain, _json(request)), "tookMs": 0.1}
                case "POST", "/ingest/batch":
                    items = [self._ingest(brain, each) for each in _json(request)["documents"]]
                    return 200, {"items": items, "tookMs": 0.1}
                case "PUT", "/documents":
                    self._store(brain, name, request.body)
                    return 204, None
                case "GET", "/documents/read" if name in brain.documents:
                    return 200, brain.documents[name]
        except (ValueError, KeyError, TypeError, AttributeError):
            pass
        return None

    def _ingest(self, brain: _Brain, body: Mapping[str, Any]) -> dict[str, Any]:
        content = base64.b64decode(body["contentBase64"], validate=True)
        self._store(brain, str(body["path"]), content)
        item = {"documentId": "0" * 32, "path": body["path"], "chunkCount": 1}
        return {**item, "bytes": len(content)}

    def _store(self, brain: _Brain, path: str, content: bytes) -> None:
        if self._is.stores:
            brain.documents[path] = content


_NOTHING: dict[str, tuple[int, Any]] = {
    "search": (
        200,
        {
            "chunks": [],
            "tookMs": 0.1,
            "trace": {
                "requestedMode": "auto",
                "effectiveMode": "bm25",
                "embedderUsed": False,
                "reranked": False,
                "fellBackToBm25": False,
                "candidateK": 50,
                "searchMs": 0.1,
            },
        },
    ),
    "brains": (200, {"items": []}),
    "documents": (200, {"items": []}),
    "batch-ops": (200, {"committed": 1}),
}


def _json(request: RawRequest) -> dict[str, Any]:
    try:
        return request.json()
    except (ValueError, RecursionError):
        return {}


async def _reply(
    exchange: RawExchange, request: RawRequest, status: int, content: JsonValue | bytes
) -> None:
    media = "application/problem+json" if status >= 400 else "application/json"
    if isinstance(content, bytes):
        media, body = "application/octet-stream", content
    else:
        body = b"" if content is None else json.dumps(content).encode()
    if request.method == "HEAD" or status == 204:
        await exchange.raw(f"HTTP/1.1 {status} X\r\nContent-Type: {media}\r\n\r\n".encode())
        return
    await exchange.reply(status, body, media)


class _Serving:
    """A daemon in this process, which cannot end."""

    ready_ms: float | None = 0.0
    process: DaemonProcess | None = None

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url

    async def wait_exit(self) -> str:
        await asyncio.Event().wait()
        return ""

    def log_tail(self) -> str:
        return ""

    def resources(self) -> Resources | None:
        return None


class DegenerateRunner(SdkRunner):
    """Serves a degenerate daemon from this event loop; it claims everything."""

    name = "degenerate"
    profiles = tuple(Profile)
    modes = tuple(Mode)
    restartable = True

    def __init__(self, degeneracy: Degeneracy) -> None:
        self.daemon = DegenerateDaemon(degeneracy)

    def use_upstream(self, kind: UpstreamKind) -> None:
        """Accept any: it calls none."""

    @asynccontextmanager
    async def serve(self, launch: Launch) -> AsyncIterator[Daemon]:
        del launch
        async with serving(self.daemon.answer, "127.0.0.1", 0) as port:
            yield _Serving(f"http://127.0.0.1:{port}")
