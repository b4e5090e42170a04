"""The feed of a brain's changes."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from memoryd.moment import rfc3339

_QUEUE_LIMIT = 1_024
"""With so many unsent changes when another commit comes, a subscription ends, after them."""


@dataclass(frozen=True, slots=True)
class Change:
    kind: Literal["created", "updated", "deleted", "renamed"]
    path: str
    old_path: str | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """A committed change."""

    id: int
    change: Change
    reason: str | None
    when: str


class Feed:
    """Publishes the changes of one brain, from worker threads to subscriptions on event loops."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._subscriptions: set[Subscription] = set()
        self._ended = False
        # Ids increase across restarts too, up to a million changes a second.
        self._last_id = time.time_ns() // 1_000

    def publish(self, changes: Sequence[Change], reason: str | None = None) -> None:
        """Announce the changes of a commit. Called inside it: ids follow the order of commits."""
        if not changes:
            # An empty wakeup would end the subscriptions.
            return
        when = rfc3339(time.time())
        with self._lock:
            if not self._subscriptions:
                return
            events = [
                Event(id_, change, reason, when)
                for id_, change in enumerate(changes, self._last_id + 1)
            ]
            self._last_id += len(changes)
            for subscription in self._subscriptions:
                subscription.send(events)

    def end(self) -> None:
        """End all subscriptions, and every later one at once."""
        with self._lock:
            self._ended = True
            for subscription in self._subscriptions:
                subscription.end()

    @contextmanager
    def subscribe(self) -> Iterator["Subscription"]:
        """Subscribe to every change that is committed within the block."""
        subscription = Subscription()
        with self._lock:
            self._subscriptions.add(subscription)
            if self._ended:
                subscription.end()
        try:
            yield subscription
        finally:
            with self._lock:
                self._subscriptions.discard(subscription)


class Subscription:
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: deque[Event] = deque()
        self._wakeup = asyncio.Event()
        self._ended = False

    def send(self, events: Sequence[Event]) -> None:
        self._loop.call_soon_threadsafe(self._enqueue, events)

    def end(self) -> None:
        self._loop.call_soon_threadsafe(self._end)

    def _enqueue(self, events: Sequence[Event]) -> None:
        # The changes of a commit are queued together, so a large batch alone ends no stream.
        if len(self._queue) >= _QUEUE_LIMIT:
            self._end()
        if not self._ended:
            self._queue += events
            self._wakeup.set()

    def _end(self) -> None:
        self._ended = True
        self._wakeup.set()

    async def receive(self, silence_s: float) -> Event | None:
        """Wait for the next event; None at the end. Raises TimeoutError after a silence."""
        if not self._queue and not self._ended:
            self._wakeup.clear()
            async with asyncio.timeout(silence_s):
                await self._wakeup.wait()
        return self._queue.popleft() if self._queue else None
