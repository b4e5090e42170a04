"""What happens, told to all who listen."""

from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from typing import TypeVar

_Event = TypeVar("_Event")


async def dispatch(
    events: AsyncGenerator[_Event, None], handlers: Iterable[Callable[[_Event], None]]
) -> _Event | None:
    """Hand each event to every handler, in their order; the last event, or None."""
    listening = tuple(handlers)
    last: _Event | None = None
    async with aclosing(events):
        async for event in events:
            for handle in listening:
                handle(event)
            last = event
    return last
