"""The event stream of a brain's changes."""

from starlette.requests import Request
from starlette.responses import Response

from memoryd.api.requests import brain_of, streams_of
from memoryd.api.stream import EventStream


async def events(request: Request) -> Response:
    brain = await brain_of(request)
    return EventStream(brain.feed.events(), streams_of(request))
