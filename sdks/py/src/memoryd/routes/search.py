"""Search, and ask: an answer as a stream."""

import time

from starlette.requests import Request
from starlette.responses import Response

from memoryd import answering
from memoryd.brain import Brain
from memoryd.models import Ask, Search, parse
from memoryd.problems import Problem
from memoryd.requests import body_of, brain_of, streams_of, unless_gone
from memoryd.responses import json_response
from memoryd.search import Found, Retriever
from memoryd.streams import EventStream


async def search(request: Request) -> Response:
    started = time.perf_counter()
    raw = await body_of(request)
    brain = await brain_of(request)
    body = parse(Search, raw)
    found = await _found(request, brain, body.query, body)
    took = (time.perf_counter() - started) * 1e3
    return json_response({"chunks": found.chunks, "tookMs": round(took, 3), "trace": found.trace})


async def ask(request: Request) -> Response:
    raw = await body_of(request)
    brain = await brain_of(request)
    body = parse(Ask, raw)
    reader = request.app.state.config.providers.reader
    if reader is None:
        raise Problem("bad_gateway", "no reader: start the daemon with JB_LLM_PROVIDER set")
    found = await _found(request, brain, body.question, body)
    events = answering.events(reader, body, found)
    return EventStream(events, streams_of(request), farewell=answering.STOPPED)


async def _found(request: Request, brain: Brain, query: str, body: Search | Ask) -> Found:
    retriever: Retriever = request.app.state.retriever
    return await unless_gone(request, lambda: retriever.retrieve(brain, query, body.top_k, body))
