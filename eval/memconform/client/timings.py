"""Time limits and measured timings of a call."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from memconform.printing.plurals import plural

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

    def at_least(self, seconds: float) -> "Timeouts":
        """Limits that leave a call this much time to answer, and more if these do."""
        total, first, gap = (max(each, seconds) for each in (self.total, self.first, self.gap))
        return Timeouts(total=total, connect=self.connect, first=first, gap=gap)


ROUNDING_MS = 1.0
"""How much longer than the latency a daemon may say that it took: it may round up to a whole
millisecond."""


@dataclass(frozen=True, slots=True)
class Timings:
    """Timings of a call, in milliseconds on the monotonic clock; None if the event never came.

    They start before the last piece of the request is handed to the kernel, so that neither waiting
    for a connection nor opening one is part of them, and all that the daemon needs is: on a busy
    machine it may have answered before this process runs again. They end when this process has read
    the answer.
    """

    first_byte_ms: float
    done_ms: float
    first_event_ms: float | None = None
    first_delta_ms: float | None = None
    daemon_ms: float | None = None
    """The longest time that the daemon says it took; None if it does not say."""
    sent_at: float | None = None
    """The instant from which they count, in seconds of `time.perf_counter`."""


def is_short(latency_ms: float | None, daemon_ms: float | None) -> bool:
    """Whether a latency is below what the daemon says it took, which it cannot be.

    In 247 of 691 searches it was, while the clock started after the write.
    """
    if latency_ms is None or daemon_ms is None:
        return False
    return latency_ms < daemon_ms - ROUNDING_MS


def short_latencies(count: int) -> str:
    """Say that latencies cannot be right, because the daemon says that it took longer."""
    return (
        f"{plural(count, 'latency')} below what the daemon says it took: a fault of memconform's"
        " clock, or of the daemon's; the latencies mean nothing"
    )


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
