"""The event stream of `ask`: retrieval, the reader's answer, its citations, the end."""

import logging
from collections.abc import AsyncGenerator
from typing import Any

from memoryd import exact_json
from memoryd.chat import Usage
from memoryd.models import Ask
from memoryd.reader import AnswerEnd, Reader
from memoryd.search import RetrievalResult
from memoryd.upstream import UpstreamError

_log = logging.getLogger("memoryd")


def event(name: str, data: dict[str, Any]) -> bytes:
    """Encode a server-sent event. JSON escapes line ends, so the data is one line."""
    text = exact_json.dumps(data)
    # A model's reply may contain half a surrogate pair, which UTF-8 cannot encode.
    return f"event: {name}\ndata: {text}\n\n".encode("utf-8", "replace")


def _failure(code: str, message: str) -> tuple[bytes, bytes]:
    return event("error", {"code": code, "message": message}), event("done", {"ok": False})


STOPPED = b"".join(_failure("internal_error", "the daemon is stopping"))
"""The last events of an answer that is interrupted by a stop of the daemon."""


async def events(
    reader: Reader, request: Ask, result: RetrievalResult
) -> AsyncGenerator[bytes, None]:
    yield event(
        "retrieve",
        {
            "chunks": result.chunks,
            "topK": request.top_k,
            "mode": result.trace["effectiveMode"],
            "trace": result.trace,
        },
    )
    pieces: list[str] = []
    end = AnswerEnd([])
    try:
        async for piece in reader.read(request, result.chunks):
            if isinstance(piece, AnswerEnd):
                end = piece
            else:
                pieces.append(piece)
                yield event("answer_delta", {"text": piece})
    except UpstreamError as error:
        for ending in _failure(error.code, error.detail):
            yield ending
        return
    except Exception as error:  # noqa: BLE001 - see below
        # Whatever failed, the stream must end with a `done` event.
        _log.exception("an answer failed")
        for ending in _failure("internal_error", type(error).__name__):
            yield ending
        return
    for index in end.cited:
        yield event("citation", _citation(result.chunks[index]))
    done: dict[str, Any] = {"ok": True, "answer": "".join(pieces)}
    yield event("done", done | _usage(end.usage))


def _citation(chunk: dict[str, Any]) -> dict[str, Any]:
    return {
        "chunkId": chunk["chunkId"],
        "path": chunk["path"],
        "title": chunk.get("title") or chunk["path"],
        "score": chunk["score"],
    }


def _usage(usage: Usage | None) -> dict[str, Any]:
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return {}
    return {"usage": {"inputTokens": usage.input_tokens, "outputTokens": usage.output_tokens}}
