"""The event stream of a brain's changes."""

import json
from collections.abc import AsyncGenerator

from starlette.requests import Request
from starlette.responses import Response

from memoryd.api.requests import brain_of, streams_of
from memoryd.api.stream import EventStream
from memoryd.feed import Event, Feed

_SILENCE_S = 15.0

_READY = b"event: ready\ndata: ok\n\n"

_PING = b"event: ping\ndata: ok\n\n"


async def events(request: Request) -> Response:
    brain = await brain_of(request)
    return EventStream(change_events(brain.feed), streams_of(request))


async def change_events(feed: Feed, silence_s: float = _SILENCE_S) -> AsyncGenerator[bytes, None]:
    """Stream server-sent events: `ready`, then every later change, and a `ping` in each silence."""
    with feed.subscribe() as subscription:
        yield _READY
        while True:
            try:
                event = await subscription.receive(silence_s)
            except TimeoutError:
                yield _PING
                continue
            if event is None:
                return
            yield _encoded(event)


def _encoded(event: Event) -> bytes:
    """Only when it is sent: a thousand events of a batch may share a long reason."""
    data = {"kind": event.change.kind, "path": event.change.path}
    optional = {"old_path": event.change.old_path, "reason": event.reason}
    data |= {key: value for key, value in optional.items() if value is not None}
    text = json.dumps(data | {"when": event.when}, ensure_ascii=False)
    return f"event: change\nid: {event.id}\ndata: {text}\n\n".encode()
