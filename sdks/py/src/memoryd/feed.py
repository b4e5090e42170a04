"""The feed of a brain's changes, and its event streams."""

import asyncio
import json
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Literal

from memoryd.moment import rfc3339

_QUEUE_LIMIT = 1_024
"""A stream with so many unsent changes when another commit comes is ended, after those changes."""

_SILENCE_S = 15.0

_READY = b"event: ready\ndata: ok\n\n"

_PING = b"event: ping\ndata: ok\n\n"


@dataclass(frozen=True, slots=True)
class Change:
    kind: Literal["created", "updated", "deleted", "renamed"]
    path: str
    old_path: str | None = None


@dataclass(frozen=True, slots=True)
class _Event:
    """Encoded only when it is sent: a thousand events of a batch may share a long reason."""

    id: int
    change: Change
    reason: str | None
    when: str

    def encoded(self) -> bytes:
        data = {"kind": self.change.kind, "path": self.change.path}
        optional = {"old_path": self.change.old_path, "reason": self.reason}
        data |= {key: value for key, value in optional.items() if value is not None}
        text = json.dumps(data | {"when": self.when}, ensure_ascii=False)
        return f"event: change\nid: {self.id}\ndata: {text}\n\n".encode()


class Feed:
    """Publishes the changes of one brain, from worker threads to listeners on event loops."""

    def __init__(self, silence_s: float = _SILENCE_S) -> None:
        self._silence_s = silence_s
        self._lock = threading.Lock()
        self._listeners: set[_Listener] = set()
        self._ended = False
        # Ids increase across restarts too, up to a million changes a second.
        self._last_id = time.time_ns() // 1_000

    def publish(self, changes: Sequence[Change], reason: str | None = None) -> None:
        """Announce the changes of a commit. Called inside it: ids follow the order of commits."""
        if not changes:
            # An empty wakeup would end the streams.
            return
        when = rfc3339(time.time())
        with self._lock:
            if not self._listeners:
                return
            events = [
                _Event(id_, change, reason, when)
                for id_, change in enumerate(changes, self._last_id + 1)
            ]
            self._last_id += len(changes)
            for listener in self._listeners:
                listener.send(events)

    def end(self) -> None:
        """End all streams, and every later one at once."""
        with self._lock:
            self._ended = True
            for listener in self._listeners:
                listener.end()

    async def events(self) -> AsyncGenerator[bytes, None]:
        """Stream server-sent events: `ready`, then every later change."""
        listener = _Listener()
        with self._lock:
            self._listeners.add(listener)
            if self._ended:
                listener.end()
        try:
            yield _READY
            while data := await listener.receive(self._silence_s):
                yield data
        finally:
            with self._lock:
                self._listeners.discard(listener)


class _Listener:
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: deque[_Event] = deque()
        self._wakeup = asyncio.Event()
        self._ended = False

    def send(self, events: Sequence[_Event]) -> None:
        self._loop.call_soon_threadsafe(self._enqueue, events)

    def end(self) -> None:
        self._loop.call_soon_threadsafe(self._end)

    def _enqueue(self, events: Sequence[_Event]) -> None:
        # The changes of a commit are queued together, so a large batch alone ends no stream.
        if len(self._queue) >= _QUEUE_LIMIT:
            self._end()
        if not self._ended:
            self._queue += events
            self._wakeup.set()

    def _end(self) -> None:
        self._ended = True
        self._wakeup.set()

    async def receive(self, silence_s: float) -> bytes:
        """Wait for an event; returns a ping after a silence, and nothing at the end."""
        if not self._queue and not self._ended:
            self._wakeup.clear()
            try:
                async with asyncio.timeout(silence_s):
                    await self._wakeup.wait()
            except TimeoutError:
                return _PING
        return self._queue.popleft().encoded() if self._queue else b""
