"""What routes want of a request: its body, its brain, its parameters, its client's presence."""

import re
from collections.abc import Callable
from typing import TypeVar
from urllib.parse import unquote_to_bytes

from anyio import CancelScope, create_task_group, to_thread
from starlette.requests import ClientDisconnect, Request

from memoryd.brain import Brain
from memoryd.brains import BrainStore
from memoryd.problems import Problem, invalid
from memoryd.streams import Streams

DECODED_LIMIT = 8 * 2**20
"""Bytes of content that one request may carry in base64."""

_BODY_LIMIT = 16 * 2**20
"""Base64 makes 8 MiB 11.2 MiB; the rest is room for titles, tags and metadata."""

_DRAIN_LIMIT = 4 * _BODY_LIMIT
"""Read and thrown away, so that a client which still sends gets to see the 413."""

_NO_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")

T = TypeVar("T")


def store_of(request: Request) -> BrainStore:
    store: BrainStore = request.app.state.store
    return store


def streams_of(request: Request) -> Streams:
    streams: Streams = request.app.state.streams
    return streams


async def brain_of(request: Request) -> Brain:
    return await to_thread.run_sync(store_of(request).get, request.path_params["brain_id"])


async def body_of(request: Request) -> bytes:
    body, size = bytearray(), 0
    try:
        async for piece in request.stream():
            size += len(piece)
            if size <= _BODY_LIMIT:
                body += piece
            elif size > _DRAIN_LIMIT:
                break
    except ClientDisconnect:
        raise _gone() from None
    refuse_over(_BODY_LIMIT, size)
    return bytes(body)


def refuse_over(limit: int, size: int) -> None:
    if size > limit:
        raise Problem("payload_too_large", f"more than {limit} bytes")


def parameters(request: Request, *known: str) -> dict[str, str]:
    """Those of the `known` parameters that the request has; what is amiss is a validation_error."""
    query: bytes = request.scope["query_string"]
    if _NO_ESCAPE.search(query):
        raise invalid("a % of the query begins no escape")
    found: dict[str, str] = {}
    for pair in query.split(b"&"):
        name, _, value = pair.partition(b"=")
        key, text = _decoded(name), _decoded(value)
        if key in found:
            raise invalid(f"{key}: stands there twice")
        if key in known:
            found[key] = text
    return found


def flag(given: dict[str, str], name: str) -> bool:
    value = given.get(name, "false")
    if value not in ("true", "false"):
        raise invalid(f"{name}: neither true nor false")
    return value == "true"


def _decoded(form: bytes) -> str:
    try:
        return unquote_to_bytes(form.replace(b"+", b" ")).decode()
    except UnicodeDecodeError:
        raise invalid("the query is no UTF-8") from None


async def unless_gone(request: Request, work: Callable[[], T]) -> T:
    """What `work` gives, in a thread; a client that leaves ends the calls that it makes."""

    async def watch(scope: CancelScope) -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        scope.cancel()

    done: list[T] = []
    failure: Exception | None = None
    # A scope of anyio's, for only its cancellation reaches what the thread has the event loop do.
    async with create_task_group() as group:
        group.start_soon(watch, group.cancel_scope)
        try:
            done.append(await to_thread.run_sync(work, abandon_on_cancel=True))
        except Exception as error:  # noqa: BLE001 - raised below, out of the group's wrapping
            failure = error
        group.cancel_scope.cancel()
    if failure is not None:
        raise failure
    if not done:
        raise _gone()
    return done[0]


def _gone() -> Problem:
    return Problem("internal_error", "the client has gone")
