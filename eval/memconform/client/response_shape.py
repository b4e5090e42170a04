"""The shape of an answer: the parts that do not depend on its content."""

import json
from functools import lru_cache
from itertools import groupby
from typing import Any

import httpx
from httpx_sse import EventSource

from memconform.client.recorder import Exchange

_TRANSIENT_HEADERS = frozenset(
    {"connection", "content-length", "date", "keep-alive", "server", "transfer-encoding"}
)
"""Headers of HTTP itself, about which the contract says nothing."""
_FREE_FORM = frozenset({"metadata", "tuning"})
"""Keys whose values are defined by a document or an implementation."""
_MAX_CACHED_KEYS = 64
"""Objects with more keys are not cached; those of the contract have up to a dozen."""
_KINDS = {
    type(None): "null",
    bool: "boolean",
    int: "number",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}
"""The JSON type of each Python type that json.loads returns."""


def shape(exchange: Exchange) -> list[str] | None:
    """Status, headers, the order of events, and each key with its types, as lines.

    None if the answer was truncated when it was recorded, or is not JSON.
    """
    if exchange.truncated or not exchange.status_line:
        return None
    headers = {name.lower(): value for name, value in exchange.response_headers}
    lines = [f"status {exchange.status_line.split()[1]}"]
    lines += [f"header {name}" for name in sorted(headers) if name not in _TRANSIENT_HEADERS]
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    lines.append(f"content-type {media_type}")
    try:
        if media_type == "text/event-stream":
            events = exchange.events or _decode_events(bytes(exchange.body))
            return lines + _events(events)
        keys: set[str] = set()
        _add_keys(json.loads(exchange.body), "$", keys)
        return lines + sorted(keys)
    except (ValueError, RecursionError):
        return None


def _decode_events(body: bytes) -> list[tuple[str, str]]:
    response = httpx.Response(200, headers={"content-type": "text/event-stream"}, content=body)
    return [(e.event, e.data) for e in EventSource(response).iter_sse() if e.data]


def _events(events: list[tuple[str, str]]) -> list[str]:
    # How often a delta or a citation comes is content, not shape.
    order = [name for name, _ in groupby(name for name, _ in events)]
    keys: set[str] = set()
    for name, data in events:
        _add_keys(json.loads(data), name, keys)
    return [f"events {' '.join(order)}", *sorted(keys)]


def _add_keys(value: Any, place: str, lines: set[str]) -> None:  # noqa: ANN401 - any JSON
    if isinstance(value, dict):
        # Cached, because chunks, deltas and citations repeat the same keys and types.
        types = tuple((key, type(item)) for key, item in value.items())
        # Where keys are data, every object has different ones, and would fill the cache.
        is_cached = len(types) <= _MAX_CACHED_KEYS
        object_lines = _object_lines if is_cached else _object_lines.__wrapped__
        flat, nested = object_lines(place, types)
        lines |= flat
        for key in nested:
            _add_keys(value[key], f"{place}.{key}", lines)
    elif isinstance(value, list):
        lines.add(f"{place}: array")
        for inner in value:
            _add_keys(inner, f"{place}[]", lines)
    else:
        lines.add(f"{place}: {_KINDS[type(value)]}")


@lru_cache(maxsize=1024)
def _object_lines(
    place: str, keys: tuple[tuple[str, type], ...]
) -> tuple[frozenset[str], tuple[str, ...]]:
    """Describe an object by its keys and the types of their values; also return the nested keys."""
    lines = {f"{place}: object"}
    nested = []
    for key, kind in keys:
        if kind in (dict, list) and key not in _FREE_FORM:
            nested.append(key)
        else:
            lines.add(f"{place}.{key}: {_KINDS[kind]}")
    return frozenset(lines), tuple(nested)
