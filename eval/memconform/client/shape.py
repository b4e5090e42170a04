"""The shape of an answer: what is the same however its content differs."""

import json
from functools import lru_cache
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
_MOST_KEYS = 64
"""Of an object that is remembered; the contract's have up to a dozen."""
_KINDS = {
    type(None): "null",
    bool: "boolean",
    int: "number",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}
"""What json.loads makes of JSON."""


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
            events = exchange.events or _decoded(bytes(exchange.body))
            return lines + _events(events)
        keys: set[str] = set()
        _add_keys(json.loads(exchange.body), "$", keys)
        return lines + sorted(keys)
    except (ValueError, RecursionError):
        return None


def _decoded(body: bytes) -> list[tuple[str, str]]:
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
        # Chunks, deltas and citations are alike: what one of them adds the next one adds too.
        kinds = tuple((key, type(each)) for key, each in value.items())
        # Of keys that are data each object has others: to remember them would fill the memory.
        lines_of = _object_lines if len(kinds) <= _MOST_KEYS else _object_lines.__wrapped__
        flat, nested = lines_of(place, kinds)
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
    """The lines of an object with values of these types; the keys whose insides have more."""
    lines = {f"{place}: object"}
    nested = []
    for key, kind in keys:
        if kind in (dict, list) and key not in _FREE:
            nested.append(key)
        else:
            lines.add(f"{place}.{key}: {_KINDS[kind]}")
    return frozenset(lines), tuple(nested)
