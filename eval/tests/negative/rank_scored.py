"""A daemon in the style of those that exist: right in itself, and unlike the reference daemons.

    python rank_scored.py --addr HOST:PORT [--fault NAME]

Scores say ranks, 1/(60 + rank) of the response that they are in; a reranker moves chunks without
scoring them again, or says why it did not run; a search that finds nothing answers `null`; and
each 204 comes with a body, after which the connection breaks at its next request. With `--fault`
it is wrong too.
"""

import argparse
import asyncio
import sys
from typing import Any
from urllib.parse import parse_qs, urlsplit
from weakref import WeakSet

from memconform.bench.raw_http import RawExchange, RawRequest, serve_forever
from tests.fakes.scripted import ScriptedBrain

FAULTS = (
    "none",
    "loses",  # one document is in no index
    "loses_unfiltered",  # one document is found with filters only
    "loses_vector",  # one document has no vector
    "no_reason",  # the reranker does not run, and nobody is told why
    "no_reranker",  # the reranker is gone, which the trace says
    "no_vectors",  # the embedder does not answer, which the trace says
    "null_for_failed",  # what failed answers a null list, with the error beside it
    "no_list",  # what found nothing has no list at all
)
LOST = "2"
"""The document whose path contains this is the one that a fault loses."""
_RERANKED = "which"
"""The reranker runs for queries with this word; for others both legs agree."""


class RankScoredDaemon:
    """Answers the routes of the dialect `jeffs-brain` from memory."""

    def __init__(self, fault: str) -> None:
        self._fault = fault
        self._brains: dict[str, ScriptedBrain] = {}
        self._spoilt: WeakSet[object] = WeakSet()
        """Connections over which a 204 came with a body."""

    async def answer(self, request: RawRequest, exchange: RawExchange) -> None:
        """Answer one request."""
        if exchange.connection in self._spoilt:
            exchange.abort()
            return
        parts = urlsplit(request.path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        match (request.method, parts.path.strip("/").split("/")):
            case ("GET", ["healthz"]):
                await exchange.json({"ok": True})
            case ("GET", ["v1", "brains"]):
                await exchange.json({"items": [{"brainId": name} for name in self._brains]})
            case ("POST", ["v1", "brains"]):
                name = request.json()["brainId"]
                self._brains[name] = ScriptedBrain()
                await exchange.json({"brainId": name}, 201)
            case (method, ["v1", "brains", name, *rest]) if name in self._brains:
                await self._in_brain(name, method, rest, query, request, exchange)
            case _:
                await exchange.problem(404, "not_found", request.path)

    async def _in_brain(
        self,
        name: str,
        method: str,
        rest: list[str],
        query: dict[str, str],
        request: RawRequest,
        exchange: RawExchange,
    ) -> None:
        documents = self._brains[name].documents
        match (method, rest):
            case ("GET", []):
                await exchange.json({"brainId": name})
            case ("DELETE", []):
                del self._brains[name]
                await self._done(exchange)
            case ("PUT", ["documents"]):
                documents[query["path"]] = request.body.decode()
                await self._done(exchange)
            case ("GET", ["documents"]):
                items = [_stat(path, text) for path, text in sorted(documents.items())]
                await exchange.json({"items": items})
            case ("POST", ["search"]):
                await exchange.json(self.search(self._brains[name], request.json()))
            case _:
                await exchange.problem(404, "not_found", request.path)

    async def _done(self, exchange: RawExchange) -> None:
        """Answer 204 with a body, which HTTP has no room for."""
        self._spoilt.add(exchange.connection)
        await exchange.raw(b"HTTP/1.1 204 No Content\r\n\r\nnull")

    def search(self, brain: ScriptedBrain, body: dict[str, Any]) -> dict[str, Any]:
        """What it answers to a search."""
        query, asked = body["query"], body.get("mode", "auto")
        mode = "hybrid" if asked == "auto" else asked
        paths = (body.get("filters") or {}).get("paths")
        hits = brain.search(query, len(brain.documents), paths)
        hits = [hit for hit in hits if not self._is_lost(hit["path"], mode, paths)]
        hits = hits[: int(body.get("topK", 10))]
        for rank, hit in enumerate(hits, start=1):
            hit["score"] = 1 / (60 + rank)
        trace = {
            "requestedMode": asked,
            "effectiveMode": mode,
            "embedderUsed": mode != "bm25",
            "reranked": False,
            "fellBackToBm25": False,
            "candidateK": 60,
        }
        if mode == "hybrid-rerank":
            trace["reranked"] = _RERANKED in query.lower() and self._fault != "no_reason"
            if trace["reranked"]:
                hits[:2] = reversed(hits[:2])
            elif self._fault != "no_reason":
                is_gone = self._fault == "no_reranker"
                trace["rerankSkipReason"] = "http 503" if is_gone else "unanimity"
        if self._fault == "no_vectors" and paths is None and mode != "bm25":
            trace |= {"embedderUsed": False, "vectorSkipReason": "connection refused"}
        response: dict[str, Any] = {"chunks": hits or None, "tookMs": 1, "trace": trace}
        if not hits and self._fault == "null_for_failed":
            response["error"] = "the index is closed"
        if not hits and self._fault == "no_list":
            del response["chunks"]
        return response

    def _is_lost(self, path: str, mode: str, paths: list[str] | None) -> bool:
        is_hit = {
            "loses": True,
            "loses_unfiltered": paths is None,
            "loses_vector": mode == "semantic",
        }.get(self._fault, False)
        return is_hit and LOST in path


def _stat(path: str, text: str) -> dict[str, Any]:
    size = len(text.encode())
    return {"path": path, "size": size, "mtime": "2026-01-01T00:00:00Z", "is_dir": False}


async def _main() -> int:
    parser = argparse.ArgumentParser(prog="rank_scored")
    parser.add_argument("--addr", required=True)
    parser.add_argument("--fault", default="none", choices=FAULTS)
    options = parser.parse_args()
    host, _, port = options.addr.rpartition(":")
    await serve_forever(RankScoredDaemon(options.fault).answer, host, int(port))
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(_main()))
