"""What a mutation makes of a request, an answer, and a stream of events. Pure."""

import json
import re
from collections.abc import Callable

import h11

from memconform.contract.wire import JsonValue
from memconform.fakes.mutation import Edit, EventEdit, Mutation, edited

_Fields = dict[bytes, bytes]

_FRAMING = ("content-length", "transfer-encoding", "expect")


def rewritten_request(mutation: Mutation, request: h11.Request, body: bytes) -> bytes:
    """The request as the daemon gets it, framed by its length."""
    method = mutation.method or request.method.decode()
    target = request.target.decode("latin-1")
    if mutation.target is not None:
        target = re.sub(*mutation.target, target)
    if mutation.send_edits:
        body = _edited_body(body, mutation.send_edits)
    if mutation.send_replace is not None:
        pattern, replacement = (part.encode() for part in mutation.send_replace)
        body = re.sub(pattern, replacement, body)
    headers = _replaced(
        [(n.decode(), v.decode("latin-1")) for n, v in request.headers.raw_items()],
        mutation.send_headers,
    )
    had_body = any(name.lower() in _FRAMING[:2] for name, _ in headers)
    kept = [(name, value) for name, value in headers if name.lower() not in _FRAMING]
    if had_body or body:
        kept.append(("Content-Length", str(len(body))))
    lines = [f"{method} {target} HTTP/1.1", *(f"{n}: {v}" for n, v in kept), "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


def _edited_body(body: bytes, edits: list[Edit]) -> bytes:
    """What cannot be edited passes as it is: a fault of the proxy would pass for the mutant's."""
    try:
        return json.dumps(edited(json.loads(body), edits)).encode()
    except (ValueError, TypeError, KeyError):
        return body


def rewritten_answer(
    mutation: Mutation, status: int, headers: list[tuple[str, str]], body: bytes
) -> tuple[int, list[tuple[str, str]], bytes]:
    """Status, headers and body as the client gets them."""
    if mutation.edits and body:
        body = _edited_body(body, mutation.edits)
    if mutation.replace is not None:
        pattern, replacement = (part.encode() for part in mutation.replace)
        body = re.sub(pattern, replacement, body)
    if mutation.body is not None:
        body = mutation.body.encode()
    return mutation.status or status, _replaced(headers, mutation.headers), body


def _replaced(
    headers: list[tuple[str, str]], changes: dict[str, str | None]
) -> list[tuple[str, str]]:
    changed = {name.lower() for name in changes}
    kept = [(name, value) for name, value in headers if name.lower() not in changed]
    return kept + [(name, value) for name, value in changes.items() if value is not None]


class EventRewriter:
    """Rewrites a stream event by event; what is no whole event yet waits."""

    def __init__(self, mutation: Mutation) -> None:
        self._edits = mutation.events
        self._replace = mutation.replace
        self._plain = not mutation.events and mutation.replace is None
        self._waiting = b""
        self._seen: dict[str, int] = {}

    def feed(self, data: bytes) -> bytes:
        if self._plain:
            return data
        *whole, self._waiting = (self._waiting + data).split(b"\n\n")
        return b"".join(self._rewritten(block) for block in whole)

    def finish(self) -> bytes:
        rest, self._waiting = self._waiting, b""
        return rest

    def _rewritten(self, block: bytes) -> bytes:
        fields = dict(line.partition(b": ")[::2] for line in block.split(b"\n"))
        name = fields.get(b"event", b"").decode()
        nth = self._seen.get(name, 0)
        self._seen[name] = nth + 1
        out = [fields]
        for edit in self._edits:
            if edit.event == name and edit.nth in (None, nth):
                out = _applied(edit, out)
        text = b"".join(_encoded(each) for each in out)
        if self._replace is not None:
            pattern, replacement = (part.encode() for part in self._replace)
            text = re.sub(pattern, replacement, text)
        return text


def _encoded(fields: _Fields) -> bytes:
    return b"\n".join(name + b": " + value for name, value in fields.items()) + b"\n\n"


def _event(value: JsonValue) -> _Fields:
    name, data = value
    text = data if isinstance(data, str) else json.dumps(data)
    return {b"event": str(name).encode(), b"data": text.encode()}


def _applied(edit: EventEdit, events: list[_Fields]) -> list[_Fields]:
    return _EVENT_EDITS[edit.op](edit, events)


def _with(edit: EventEdit, events: list[_Fields], name: bytes) -> list[_Fields]:
    """The first event with another value of a field."""
    value = edit.value if isinstance(edit.value, str) else json.dumps(edit.value)
    return [{**events[0], name: value.encode()}, *events[1:]]


def _with_edits(edit: EventEdit, events: list[_Fields]) -> list[_Fields]:
    data = _edited_body(events[0].get(b"data", b""), edit.edits)
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
