"""What routes need from a request: body, brain, parameters, and whether the client is there."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from anyio import CancelScope, to_thread
from starlette.requests import ClientDisconnect, Request

from memoryd.api.stream import Streams
from memoryd.brain.brain import Brain
from memoryd.brain.store import BrainStore
from memoryd.problem import Problem

DECODED_LIMIT = 8 * 2**20
"""Bytes of decoded content in one request."""

_BODY_LIMIT = 16 * 2**20
"""8 MiB are 11.2 MiB in base64; the rest leaves room for titles, tags and metadata."""

_DRAIN_LIMIT = 4 * _BODY_LIMIT
"""How much of a body is read and discarded, so that a client that still sends sees the 413."""

T = TypeVar("T")


def store_of(request: Request) -> BrainStore:
    store: BrainStore = request.app.state.store
    return store


def streams_of(request: Request) -> Streams:
    streams: Streams = request.app.state.streams
    return streams


def find_brain(request: Request) -> Brain:
    """Call it from a thread: it reads the disk, and may wait for a brain that is deleted."""
    return store_of(request).get(request.path_params["brain_id"])


async def brain_of(request: Request) -> Brain:
    return await to_thread.run_sync(find_brain, request)


async def body_of(request: Request) -> bytes:
    """Read the body; raises Problem `payload_too_large` over 16 MiB."""
    body, size = bytearray(), 0
    try:
        async for piece in request.stream():
            size += len(piece)
            if size <= _BODY_LIMIT:
                body += piece
            elif size > _DRAIN_LIMIT:
                break
    except ClientDisconnect:
        raise _disconnected() from None
    require_at_most(_BODY_LIMIT, size)
    return bytes(body)


def require_at_most(limit: int, size: int) -> None:
    """Raises Problem `payload_too_large` if `size`, in bytes, exceeds `limit`."""
    if size > limit:
        raise Problem("payload_too_large", f"more than {limit} bytes")


async def run_cancellable(request: Request, work: Callable[[], T]) -> T:
    """Run `work` in a thread; if the client disconnects, its calls to services are cancelled.

    The thread keeps its slot until `work` ends, or a storm of disconnects would start threads
    without bound.

    Raises:
        Problem: whatever `work` raises; `internal_error` if a disconnect has cancelled a call, or
            the wait for a slot. Otherwise `work` ends as if the client were there.
    """

    async def watch(scope: CancelScope) -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        scope.cancel()

    # anyio's scope, because only its cancellation reaches calls from the thread to the event loop;
    # its task group would take a tenth of the time of a small search.
    with CancelScope() as scope:
        watcher = asyncio.create_task(watch(scope))
        try:
            return await to_thread.run_sync(work, limiter=request.app.state.work_slots)
        finally:
            watcher.cancel()
    raise _disconnected()


def _disconnected() -> Problem:
    return Problem("internal_error", "the client has disconnected")
