"""The event stream of a brain's changes."""

from starlette.requests import Request
from starlette.responses import Response

from memoryd.requests import brain_of, streams_of
from memoryd.responses import NO_STORE
from memoryd.streams import EventStream


async def events(request: Request) -> Response:
    brain = await brain_of(request)
    if request.method == "HEAD":
        # Starlette routes HEAD to GET, whose stream would never end.
        return Response(media_type="text/event-stream", headers=NO_STORE)
    return EventStream(brain.feed.events(), streams_of(request))
