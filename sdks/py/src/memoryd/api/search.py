"""Search, and the event stream of ask."""

import time

from starlette.requests import Request
from starlette.responses import Response

from memoryd.api.bodies import Ask, Search
from memoryd.api.decode import parse
from memoryd.api.requests import body_of, brain_of, run_cancellable
from memoryd.api.respond import json_response
from memoryd.brain.brain import Brain
from memoryd.retrieve.retrieve import RetrievalResult, Retriever


async def search(request: Request) -> Response:
    started = time.perf_counter()
    raw = await body_of(request)
    brain = await brain_of(request)
    body = parse(Search, raw)
    result = await retrieve(request, brain, body.query, body)
    took = (time.perf_counter() - started) * 1e3
    return json_response({"chunks": result.chunks, "tookMs": round(took, 3), "trace": result.trace})


async def retrieve(
    request: Request, brain: Brain, query: str, body: Search | Ask
) -> RetrievalResult:
    retriever: Retriever = request.app.state.retriever
    return await run_cancellable(
        request, lambda: retriever.retrieve(brain, query, body.top_k, body)
    )
