"""The shape of an answer: what is the same however its content differs."""

import json
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import httpx
from httpx_sse import EventSource

from memconform.client.recorder import Exchange

_OF_THE_MOMENT = frozenset(
    {"connection", "content-length", "date", "keep-alive", "server", "transfer-encoding"}
)
"""Headers of HTTP's own that say nothing of the contract."""
_FREE = frozenset({"metadata", "tuning"})
"""Keys whose insides are a document's, or an implementation's."""


def shape(exchange: Exchange) -> list[str] | None:
    """Status, headers, the order of events, and each key with its types, as sorted lines.

    None where the answer is too long to have been kept whole, or is no JSON.
    """
    if exchange.truncated or not exchange.status_line:
        return None
    headers = {name.lower(): value for name, value in exchange.response_headers}
    lines = [f"status {exchange.status_line.split()[1]}"]
    lines += [f"header {name}" for name in sorted(headers) if name not in _OF_THE_MOMENT]
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    lines.append(f"content-type {media_type}")
    try:
        if media_type == "text/event-stream":
            return lines + _events(bytes(exchange.body))
        return lines + sorted(set(_keys(json.loads(exchange.body), "$")))
    except (ValueError, RecursionError):
        return None


def _events(body: bytes) -> list[str]:
    response = httpx.Response(200, headers={"content-type": "text/event-stream"}, content=body)
    events = [(e.event, json.loads(e.data)) for e in EventSource(response).iter_sse() if e.data]
    # How often a delta or a citation comes is content, not shape.
    order = [name for name, _ in groupby(name for name, _ in events)]
    keys = {line for name, data in events for line in _keys(data, name)}
    return [f"events {' '.join(order)}", *sorted(keys)]


def _keys(value: Any, place: str) -> Iterator[str]:  # noqa: ANN401 - any JSON
    match value:
        case dict():
            yield f"{place}: object"
            for key, inner in value.items():
                if key in _FREE:
                    yield f"{place}.{key}: {_kind(inner)}"
                else:
                    yield from _keys(inner, f"{place}.{key}")
        case list():
            yield f"{place}: array"
            for inner in value:
                yield from _keys(inner, f"{place}[]")
        case _:
            yield f"{place}: {_kind(value)}"


def _kind(value: Any) -> str:  # noqa: ANN401 - any JSON
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"
