"""Writes the streams of client cases as each service writes them, and says what must be read. Pure.

The shapes of the OpenAI and Anthropic APIs are those of the streams in `upstream/chat_apis.py`.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import cycle
from typing import Any

from memconform.conformance.clients.case import TEXTS, Item, Response, Wire

Event = tuple[str, Any]
"""The name of an event, and its data."""

_CHUNK = {
    "chunkId": "lamp.md#0",
    "documentId": "lamp.md",
    "path": "lamp.md",
    "title": "The lamp",
    "summary": "",
    "text": "The lamp is in the attic.",
    "score": 0.5,
    "metadata": {"floor": 2},
}
CANONICAL: dict[str, Any] = {
    "retrieve": {
        "chunks": [_CHUNK],
        "topK": 5,
        "mode": "bm25",
        "trace": {"effectiveMode": "bm25", "candidates": 1},
    },
    "citation": {"chunkId": "lamp.md#0", "path": "lamp.md", "title": "The lamp", "score": 0.5},
    "error": json.loads('{"code": "bad_gateway", "message": "the upstream has hung up"}'),
    "done": {"ok": True, "answer": "".join(TEXTS), "usage": {"inputTokens": 7, "outputTokens": 3}},
}
"""The data of events that a case does not write out."""
SEARCH = {"chunks": [_CHUNK], "tookMs": 1, "trace": {"effectiveMode": "bm25", "candidates": 1}}
INGESTED = {"documentId": "lamp.md", "path": "lamp.md", "chunkCount": 1, "bytes": 25, "tookMs": 1}

_KNOWN = ("retrieve", "answer_delta", "citation", "error", "done")
_YIELDED: dict[Wire, tuple[str, ...]] = {
    "memory": ("retrieve", "answer_delta", "citation", "done"),
    "openai": ("answer_delta",),
    "anthropic": ("answer_delta",),
}
"""What a client of each service yields; an `error` it may raise."""
_LAST = ("done", "error")


def events_of(item: Item) -> list[Event]:
    """The events that a part of a stream consists of."""
    if item.event is not None:
        data = item.data if "data" in item.model_fields_set else CANONICAL.get(item.event)
        return [(item.event, data)]
    if item.delta is not None:
        return [("answer_delta", {"text": item.delta})]
    if item.large is not None:
        return [("answer_delta", {"text": "e" * item.large})]
    if item.repeat is not None:
        return [("answer_delta", {"text": "é"})] * item.repeat
    return [("answer_delta", data) for data in item.yields]


def expected_events(response: Response, wire: Wire) -> list[Event]:
    """The events that a client must yield of a response, if it reads all of it."""
    expected: list[Event] = []
    for item in response.items() if response.is_stream else ():
        for name, data in events_of(item):
            if name in _YIELDED[wire]:
                expected.append((name, data))
            if name in _LAST:
                return expected
        if item.then is not None:
            break
    return expected


def expected_result(response: Response) -> Any:  # noqa: ANN401 - JSON
    """The JSON body of a response."""
    usual = {"search": SEARCH, "ingest": INGESTED}.get(response.to)
    given = (response.json_, response.json_body)
    return next((body for body in given if body is not None), usual)


def encode_item(item: Item, response: Response, wire: Wire, ends: Iterator[str]) -> bytes:
    """A part of a stream as it is sent; empty if it sends nothing."""
    if item.raw is not None:
        return item.raw.encode("utf-8", "surrogatepass")
    if item.content is not None:
        return item.content.encoded()
    return b"".join(
        _encode_event(each, response, ends)
        for event in events_of(item)
        for each in _of(wire, event)
    )


def line_ends(response: Response) -> Iterator[str]:
    """The ends of a stream's lines, in turn."""
    return cycle(response.ends)


def _encode_event(event: Event, response: Response, ends: Iterator[str]) -> bytes:
    name, data = event
    if isinstance(data, str):
        text = data
    else:
        text = json.dumps(data, ensure_ascii=False, indent=1 if response.split_data else None)
    lines = [*response.lines]
    if name:
        lines.append(f"event:{response.space}{name}")
    lines += [f"data:{response.space}{line}" for line in text.split("\n")]
    return "".join(line + next(ends) for line in (*lines, "")).encode("utf-8", "surrogatepass")


def _of(wire: Wire, event: Event) -> Sequence[Event]:
    """An event of the contract as events of another service; none if it has no such thing."""
    if wire == "memory":
        return [event]
    return (_openai if wire == "openai" else _anthropic)(event)


def _openai(event: Event) -> Sequence[Event]:
    name, data = event

    def chunk(delta: dict[str, str], finish: str | None = None) -> Event:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return "", {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1_700_000_000,
            "model": "scripted",
            "choices": [choice],
        }

    match name:
        case "retrieve":
            return [chunk({"role": "assistant", "content": ""})]
        case "answer_delta":
            return [chunk({"content": data["text"]})]
        case "done":
            return [chunk({}, "stop"), ("", "[DONE]")]
        case "error":
            return [("", {"error": {**data, "type": "server_error"}})]
    return [] if name in _KNOWN else [event]


def _anthropic(event: Event) -> Sequence[Event]:
    name, data = event

    def typed(kind: str, **rest: object) -> Event:
        return kind, {"type": kind, **rest}

    match name:
        case "retrieve":
            message: dict[str, Any] = {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "content": [],
                "model": "scripted",
                "stop_reason": None,
                "stop_sequence": None,
                "usage": {"input_tokens": 7, "output_tokens": 1},
            }
            block = {"type": "text", "text": ""}
            return [
                typed("message_start", message=message),
                typed("content_block_start", index=0, content_block=block),
            ]
        case "answer_delta":
            delta = {"type": "text_delta", "text": data["text"]}
            return [typed("content_block_delta", index=0, delta=delta)]
        case "done":
            delta = {"stop_reason": "end_turn", "stop_sequence": None}
            return [
                typed("content_block_stop", index=0),
                typed("message_delta", delta=delta, usage={"output_tokens": 3}),
                typed("message_stop"),
            ]
        case "error":
            return [typed("error", error={"type": "api_error", "message": data["message"]})]
    return [] if name in _KNOWN else [event]
