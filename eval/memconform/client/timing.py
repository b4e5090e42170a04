"""Time limits and measured timings of a call."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

STALL_SECONDS = 0.1
"""How late this process may notice that a limit has passed without having been held up: timers of
an idle machine are late by 1 ms, of a busy one by 30 ms."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Time limits of a call, in seconds."""

    total: float = 120.0
    connect: float = 5.0
    first: float = 30.0
    """From sending the request to the first event of a stream, or to a plain response's headers."""
    gap: float = 30.0
    """Between two events of a stream, or two pieces of a plain response."""


@dataclass(frozen=True, slots=True)
class Timings:
    """Timings of a call, in milliseconds on the monotonic clock; None if the event never came.

    They start when the last byte of the request is handed to the kernel, so that neither waiting
    for a connection nor opening one is part of them. They end when this process has read the
    answer.
    """

    first_byte_ms: float
    done_ms: float
    first_event_ms: float | None = None
    first_delta_ms: float | None = None


@asynccontextmanager
async def time_limit(seconds: float) -> AsyncIterator[None]:
    """Bound a block like `asyncio.timeout`, but not by a stall of this process.

    If the whole machine stops, the limit passes although nobody was slow. A limit that is noticed
    late by more than STALL_SECONDS is therefore extended once, by as much as it was late.

    Raises:
        TimeoutError: if the block took longer.
    """
    loop = asyncio.get_running_loop()

    def expire(due: float) -> None:
        late = loop.time() - due
        limit.reschedule(loop.time() + (late if late > STALL_SECONDS else 0))

    async with asyncio.timeout(None) as limit:
        timer = loop.call_later(seconds, expire, loop.time() + seconds)
        try:
            yield
        finally:
            timer.cancel()
