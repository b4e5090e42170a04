"""Search, and what ask shares with it: the request and its result in JSON."""

import time
from dataclasses import asdict
from functools import cache
from typing import Any

from pydantic.alias_generators import to_camel
from simplejson import RawJSON
from starlette.requests import Request
from starlette.responses import Response

from memoryd.api.bodies import Ask, FilterBody, Search, TuningBody
from memoryd.api.decode import parse
from memoryd.api.requests import body_of, find_brain, run_cancellable
from memoryd.api.respond import json_response
from memoryd.brain.brain import Brain
from memoryd.index.chunk import Chunk
from memoryd.index.filter import Filters
from memoryd.rank.dates import Recency, Temporal
from memoryd.retrieve.plan import RetrievalRequest, Tuning
from memoryd.retrieve.retrieve import RetrievalResult, Retriever, Trace

_camel_case = cache(to_camel)

_SCOPES = {"global": "memory/global/", "project": "memory/project/", "raw": "raw/"}


async def search(request: Request) -> Response:
    started = time.perf_counter()
    raw = await body_of(request)

    def run() -> RetrievalResult:
        brain = find_brain(request)
        body = parse(Search, raw)
        return retrieve(request, brain, body.query, body)

    result = await run_cancellable(request, run)
    took = (time.perf_counter() - started) * 1e3
    chunks = [chunk_json(chunk) for chunk in result.chunks]
    answer = {"chunks": chunks, "tookMs": round(took, 3), "trace": trace_json(result.trace)}
    return json_response(answer)


def retrieve(request: Request, brain: Brain, query: str, body: Search | Ask) -> RetrievalResult:
    """Call it from a worker thread."""
    retriever: Retriever = request.app.state.retriever
    wanted = RetrievalRequest(
        query=query,
        top_k=body.top_k,
        mode=body.mode,
        candidate_k=body.candidate_k,
        rerank_top_n=body.rerank_top_n,
        filters=_filters(body.filters),
        tuning=_tuning(body.tuning),
    )
    return retriever.retrieve(brain, wanted)


def chunk_json(chunk: Chunk) -> dict[str, Any]:
    content: dict[str, Any] = {
        "chunkId": chunk.chunk_id,
        "documentId": chunk.document_id,
        "path": chunk.path,
        "score": chunk.score,
        "text": chunk.text,
    }
    if chunk.title is not None:
        content["title"] = chunk.title
    if chunk.metadata_json != "{}":
        content["metadata"] = RawJSON(chunk.metadata_json)
    return content


def trace_json(trace: Trace) -> dict[str, Any]:
    return _in_camel_case(asdict(trace))


def _in_camel_case(values: dict[str, Any]) -> dict[str, Any]:
    """Keys as the contract has them, without those that have no value."""
    return {
        _camel_case(key): _in_camel_case(value) if isinstance(value, dict) else value
        for key, value in values.items()
        if value is not None
    }


def _filters(body: FilterBody | None) -> Filters:
    if body is None:
        return Filters()
    prefixes = [
        body.path_prefix,
        _SCOPES[body.scope] if body.scope else None,
        f"memory/project/{body.project}/" if body.project is not None else None,
    ]
    return Filters(
        prefixes=tuple(prefix for prefix in prefixes if prefix is not None),
        paths=body.paths,
        tags=body.tags,
        session_ids=body.session_ids,
    )


def _tuning(body: TuningBody | None) -> Tuning | None:
    if body is None:
        return None
    values = dict(body)
    if body.recency is not None:
        values["recency"] = Recency(**dict(body.recency))
    if body.temporal is not None:
        values["temporal"] = Temporal(**dict(body.temporal))
    return Tuning(**values)
