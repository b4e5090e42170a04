"""The `ask` stream: retrieval, the reader's answer, its citation, the end."""

import json
from collections.abc import Iterator
from typing import Any

from memoryd import reader
from memoryd.models import Ask
from memoryd.search import Found


def event(name: str, data: dict[str, Any]) -> bytes:
    """One server-sent event; JSON escapes every line end, so the data stays on one line."""
    return (
        f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False, allow_nan=False)}\n\n".encode()
    )


def events(request: Ask, found: Found) -> Iterator[bytes]:
    yield event(
        "retrieve",
        {
            "chunks": found.chunks,
            "topK": request.top_k,
            "mode": found.trace["effectiveMode"],
            "trace": found.trace,
        },
    )
    answer = reader.read(request.question, [chunk["text"] for chunk in found.chunks])
    for delta in answer.deltas:
        yield event("answer_delta", {"text": delta})
    if answer.source is not None:
        source = found.chunks[answer.source]
        yield event(
            "citation",
            {
                "chunkId": source["chunkId"],
                "path": source["path"],
                "title": source.get("title") or source["path"],
                "score": source["score"],
            },
        )
    yield event("done", {"ok": True, "answer": answer.text})
