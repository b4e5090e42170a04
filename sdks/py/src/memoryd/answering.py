"""The `ask` stream: retrieval, the reader's answer, its citations, the end."""

import json
import logging
from collections.abc import AsyncGenerator
from typing import Any

from memoryd.chat import Usage
from memoryd.models import Ask
from memoryd.reader import Closing, Reader
from memoryd.search import Found
from memoryd.upstream import UpstreamError

_log = logging.getLogger("memoryd")


def event(name: str, data: dict[str, Any]) -> bytes:
    """One server-sent event; JSON escapes every line end, so the data stays on one line."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False)
    # A model's reply may hold half a surrogate pair, which UTF-8 cannot carry.
    return f"event: {name}\ndata: {text}\n\n".encode("utf-8", "replace")


def _failure(code: str, message: str) -> tuple[bytes, bytes]:
    return event("error", {"code": code, "message": message}), event("done", {"ok": False})


STOPPED = b"".join(_failure("internal_error", "the daemon is stopping"))
"""What an answer ends with that the daemon's own end cuts short."""


async def events(reader: Reader, request: Ask, found: Found) -> AsyncGenerator[bytes, None]:
    yield event(
        "retrieve",
        {
            "chunks": found.chunks,
            "topK": request.top_k,
            "mode": found.trace["effectiveMode"],
            "trace": found.trace,
        },
    )
    said: list[str] = []
    closing = Closing([])
    try:
        async for piece in reader.read(request, found.chunks):
            if isinstance(piece, Closing):
                closing = piece
            else:
                said.append(piece)
                yield event("answer_delta", {"text": piece})
    except UpstreamError as error:
        for ending in _failure(error.code, error.detail):
            yield ending
        return
    except Exception as error:  # noqa: BLE001 - see below
        # Whatever it is, the stream must not look cut.
        _log.exception("an answer failed")
        for ending in _failure("internal_error", type(error).__name__):
            yield ending
        return
    for index in closing.cited:
        yield event("citation", _citation(found.chunks[index]))
    done: dict[str, Any] = {"ok": True, "answer": "".join(said)}
    yield event("done", done | _usage(closing.usage))


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
