"""Search, and the event stream of ask."""

import time

from starlette.requests import Request
from starlette.responses import Response

from memoryd import answering
from memoryd.brain import Brain
from memoryd.models import Ask, Search, parse
from memoryd.problems import Problem
from memoryd.requests import body_of, brain_of, run_cancellable, streams_of
from memoryd.responses import json_response
from memoryd.search import RetrievalResult, Retriever
from memoryd.streams import EventStream


async def search(request: Request) -> Response:
    started = time.perf_counter()
    raw = await body_of(request)
    brain = await brain_of(request)
    body = parse(Search, raw)
    result = await _retrieve(request, brain, body.query, body)
    took = (time.perf_counter() - started) * 1e3
    return json_response({"chunks": result.chunks, "tookMs": round(took, 3), "trace": result.trace})


async def ask(request: Request) -> Response:
    raw = await body_of(request)
    brain = await brain_of(request)
    body = parse(Ask, raw)
    reader = request.app.state.config.providers.reader
    if reader is None:
        raise Problem("bad_gateway", "no reader: start the daemon with JB_LLM_PROVIDER set")
    result = await _retrieve(request, brain, body.question, body)
    events = answering.events(reader, body, result)
    return EventStream(events, streams_of(request), final_event=answering.STOPPED)


async def _retrieve(
    request: Request, brain: Brain, query: str, body: Search | Ask
) -> RetrievalResult:
    retriever: Retriever = request.app.state.retriever
    return await run_cancellable(
        request, lambda: retriever.retrieve(brain, query, body.top_k, body)
    )
