"""Threads for the work of requests, bounded even if clients disconnect before it ends."""

import math
import threading
from asyncio import get_running_loop
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from anyio import CapacityLimiter, to_thread

T = TypeVar("T")


class Workers:
    """Runs work in threads that a cancelled request abandons.

    A thread keeps its slot until its work ends. The limiter of `to_thread.run_sync` frees it when
    the request is cancelled, so that a storm of disconnects would start threads without bound.
    """

    def __init__(self, limit: int) -> None:
        self._slots = CapacityLimiter(limit)
        self._unlimited = CapacityLimiter(math.inf)

    async def run(self, work: Callable[[], T]) -> T:
        """Run `work` in a thread; when it is cancelled, the thread goes on alone."""
        loop, slot = get_running_loop(), object()
        begin = threading.Lock()
        """Taken by the thread, or by this task if the thread has not begun yet."""

        def run() -> T:
            if not begin.acquire(blocking=False):
                raise RuntimeError("abandoned before it began")
            try:
                return work()
            finally:
                with suppress(RuntimeError):  # the loop is closed: the daemon has stopped
                    loop.call_soon_threadsafe(self._slots.release_on_behalf_of, slot)

        await self._slots.acquire_on_behalf_of(slot)
        try:
            return await to_thread.run_sync(run, abandon_on_cancel=True, limiter=self._unlimited)
        finally:
            if begin.acquire(blocking=False):
                self._slots.release_on_behalf_of(slot)
