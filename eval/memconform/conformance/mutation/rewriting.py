"""Applies a mutation to requests, responses and event streams; without I/O."""

import json
import re
from collections.abc import Callable

import h11

from memconform.conformance.mutation.mutation import Edit, EventEdit, Mutation, apply_edits
from memconform.contract.wire import JsonValue

_Fields = dict[bytes, bytes]

_FRAMING = ("content-length", "transfer-encoding", "expect")


def rewrite_request(mutation: Mutation, request: h11.Request, body: bytes) -> bytes:
    """Encode the request for the daemon, framed by its length."""
    method = mutation.method or request.method.decode()
    target = request.target.decode("latin-1")
    if mutation.target is not None:
        target = re.sub(*mutation.target, target)
    if mutation.send_edits:
        body = _edit_body(body, mutation.send_edits)
    if mutation.send_replace is not None:
        pattern, replacement = (part.encode() for part in mutation.send_replace)
        body = re.sub(pattern, replacement, body)
    headers = _replace_headers(
        [(n.decode(), v.decode("latin-1")) for n, v in request.headers.raw_items()],
        mutation.send_headers,
    )
    had_body = any(name.lower() in _FRAMING[:2] for name, _ in headers)
    headers = [(name, value) for name, value in headers if name.lower() not in _FRAMING]
    if had_body or body:
        headers.append(("Content-Length", str(len(body))))
    lines = [f"{method} {target} HTTP/1.1", *(f"{n}: {v}" for n, v in headers), "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


def _edit_body(body: bytes, edits: list[Edit]) -> bytes:
    """Apply edits; return `body` unchanged if they do not apply.

    An error of the proxy would be mistaken for the mutant's fault.
    """
    try:
        return json.dumps(apply_edits(json.loads(body), edits)).encode()
    except (ValueError, TypeError, KeyError):
        return body


def rewrite_answer(
    mutation: Mutation, status: int, headers: list[tuple[str, str]], body: bytes
) -> tuple[int, list[tuple[str, str]], bytes]:
    """Return status, headers and body as the client receives them."""
    if mutation.edits and body:
        body = _edit_body(body, mutation.edits)
    if mutation.replace is not None:
        pattern, replacement = (part.encode() for part in mutation.replace)
        body = re.sub(pattern, replacement, body)
    if mutation.body is not None:
        body = mutation.body.encode()
    return mutation.status or status, _replace_headers(headers, mutation.headers), body


def _replace_headers(
    headers: list[tuple[str, str]], changes: dict[str, str | None]
) -> list[tuple[str, str]]:
    names = {name.lower() for name in changes}
    unchanged = [(name, value) for name, value in headers if name.lower() not in names]
    return unchanged + [(name, value) for name, value in changes.items() if value is not None]


class EventRewriter:
    """Rewrites a stream event by event; incomplete events are buffered."""

    def __init__(self, mutation: Mutation) -> None:
        self._edits = mutation.events
        self._replace = mutation.replace
        self._plain = not mutation.events and mutation.replace is None
        self._buffer = b""
        self._counts: dict[str, int] = {}

    def feed(self, data: bytes) -> bytes:
        if self._plain:
            return data
        *whole, self._buffer = (self._buffer + data).split(b"\n\n")
        return b"".join(self._rewrite(block) for block in whole)

    def finish(self) -> bytes:
        rest, self._buffer = self._buffer, b""
        return rest

    def _rewrite(self, block: bytes) -> bytes:
        fields = dict(line.partition(b": ")[::2] for line in block.split(b"\n"))
        name = fields.get(b"event", b"").decode()
        nth = self._counts.get(name, 0)
        self._counts[name] = nth + 1
        out = [fields]
        for edit in self._edits:
            if edit.event == name and edit.nth in (None, nth):
                out = _apply(edit, out)
        text = b"".join(_encode(event) for event in out)
        if self._replace is not None:
            pattern, replacement = (part.encode() for part in self._replace)
            text = re.sub(pattern, replacement, text)
        return text


def _encode(fields: _Fields) -> bytes:
    return b"\n".join(name + b": " + value for name, value in fields.items()) + b"\n\n"


def _event(value: JsonValue) -> _Fields:
    name, data = value
    text = data if isinstance(data, str) else json.dumps(data)
    return {b"event": str(name).encode(), b"data": text.encode()}


def _apply(edit: EventEdit, events: list[_Fields]) -> list[_Fields]:
    return _EVENT_EDITS[edit.op](edit, events)


def _with(edit: EventEdit, events: list[_Fields], name: bytes) -> list[_Fields]:
    """Replace the value of a field in the first event."""
    value = edit.value if isinstance(edit.value, str) else json.dumps(edit.value)
    return [{**events[0], name: value.encode()}, *events[1:]]


def _with_edits(edit: EventEdit, events: list[_Fields]) -> list[_Fields]:
    data = _edit_body(events[0].get(b"data", b""), edit.edits)
    return [{**events[0], b"data": data}, *events[1:]]


_EVENT_EDITS: dict[str, Callable[[EventEdit, list[_Fields]], list[_Fields]]] = {
    "drop": lambda _, __: [],
    "double": lambda _, events: [events[0], *events],
    "rename": lambda edit, events: _with(edit, events, b"event"),
    "data": lambda edit, events: _with(edit, events, b"data"),
    "edit": _with_edits,
    "insert_before": lambda edit, events: [_event(edit.value), *events],
    "insert_after": lambda edit, events: [*events, _event(edit.value)],
    "id": lambda edit, events: _with(edit, events, b"id"),
}
