"""Dispatch of engine events to their handlers."""

from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from typing import TypeVar

_Event = TypeVar("_Event")


async def dispatch(
    events: AsyncGenerator[_Event, None], handlers: Iterable[Callable[[_Event], None]]
) -> _Event | None:
    """Pass each event to every handler, in order; return the last event, or None."""
    handlers = tuple(handlers)
    last: _Event | None = None
    async with aclosing(events):
        async for event in events:
            for handle in handlers:
                handle(event)
            last = event
    return last
