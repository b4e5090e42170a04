"""`ask`, and its event stream: retrieval, the reader's answer, its citations, the end."""

import logging
from collections.abc import AsyncGenerator
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from memoryd.api.bodies import Ask
from memoryd.api.decode import parse
from memoryd.api.requests import body_of, brain_of, run_cancellable, streams_of
from memoryd.api.search import chunk_json, retrieve, trace_json
from memoryd.api.stream import EventStream
from memoryd.index.chunk import Chunk, notes_of
from memoryd.llm.llm import Usage
from memoryd.problem import Problem
from memoryd.reader.reader import AnswerEnd, Question, Reader
from memoryd.retrieve.retrieve import RetrievalResult
from memoryd.upstream import UpstreamError
from memoryd.wire import exact_json

_log = logging.getLogger("memoryd")


def event(name: str, data: dict[str, Any]) -> bytes:
    """Encode a server-sent event. JSON escapes line ends, so the data is one line."""
    text = exact_json.dumps(data)
    # A model's reply may contain half a surrogate pair, which UTF-8 cannot encode.
    return f"event: {name}\ndata: {text}\n\n".encode("utf-8", "replace")


def _failure(code: str, message: str) -> bytes:
    return event("error", {"code": code, "message": message}) + event("done", {"ok": False})


STOPPED = _failure("internal_error", "the daemon is stopping")
"""The last events of an answer that is interrupted by a stop of the daemon."""


async def events(
    reader: Reader, request: Ask, result: RetrievalResult
) -> AsyncGenerator[bytes, None]:
    chunks, trace = [chunk_json(chunk) for chunk in result.chunks], trace_json(result.trace)
    yield event(
        "retrieve",
        {
            "chunks": chunks,
            "topK": request.top_k,
            "mode": trace["effectiveMode"],
            "trace": trace,
        },
    )
    question = Question(
        text=request.question,
        notes=notes_of(result.chunks),
        date=request.question_date,
        mode=request.reader_mode,
        model=request.model,
    )
    pieces: list[str] = []
    end = AnswerEnd([])
    try:
        async for piece in reader.read(question):
            if isinstance(piece, AnswerEnd):
                end = piece
            else:
                pieces.append(piece)
                yield event("answer_delta", {"text": piece})
    except UpstreamError as error:
        yield _failure(error.code, error.detail)
        return
    except Exception as error:  # noqa: BLE001 - see below
        # Whatever failed, the stream must end with a `done` event.
        _log.exception("an answer failed")
        yield _failure("internal_error", type(error).__name__)
        return
    for index in end.cited:
        yield event("citation", _citation(result.chunks[index]))
    done: dict[str, Any] = {"ok": True, "answer": "".join(pieces)}
    yield event("done", done | _usage(end.usage))


def _citation(chunk: Chunk) -> dict[str, Any]:
    return {
        "chunkId": chunk.chunk_id,
        "path": chunk.path,
        "title": chunk.title or chunk.path,
        "score": chunk.score,
    }


def _usage(usage: Usage | None) -> dict[str, Any]:
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return {}
    return {"usage": {"inputTokens": usage.input_tokens, "outputTokens": usage.output_tokens}}


async def ask(request: Request) -> Response:
    raw = await body_of(request)
    brain = await brain_of(request)
    body = parse(Ask, raw)
    reader = request.app.state.reader
    if reader is None:
        raise Problem("bad_gateway", "no reader: start the daemon with JB_LLM_PROVIDER set")
    result = await run_cancellable(request, lambda: retrieve(request, brain, body.question, body))
    answer = events(reader, body, result)
    return EventStream(answer, streams_of(request), final_event=STOPPED)
