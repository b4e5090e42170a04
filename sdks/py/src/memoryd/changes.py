"""What changed in a brain, told to all who listen."""

import asyncio
import json
import threading
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

_QUEUE_LIMIT = 1_024
"""Changes that wait for a listener; a batch may make so many at once."""

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
    """Encoded only when it is sent: a batch may have a thousand, each with its whole reason."""

    id: int
    change: Change
    reason: str | None
    when: str

    def encoded(self) -> bytes:
        data = {"kind": self.change.kind, "path": self.change.path}
        given = {"old_path": self.change.old_path, "reason": self.reason}
        data |= {key: value for key, value in given.items() if value is not None}
        text = json.dumps(data | {"when": self.when}, ensure_ascii=False)
        return f"event: change\nid: {self.id}\ndata: {text}\n\n".encode()


class Hub:
    """The changes of one brain; listeners are on an event loop, what is told comes from threads."""

    def __init__(self, silence_s: float = _SILENCE_S) -> None:
        self._silence_s = silence_s
        self._lock = threading.Lock()
        self._listeners: set[_Listener] = set()
        self._ended = False
        # Ids rise over a restart too, as long as there are less than a million changes a second.
        self._last_id = time.time_ns() // 1_000

    def publish(self, changes: Sequence[Change], reason: str | None = None) -> None:
        """Called where they are committed, so that ids are in the order of the commits."""
        if not changes:
            # To be woken for nothing is the end of a stream.
            return
        when = rfc3339(time.time())
        with self._lock:
            if not self._listeners:
                return
            told = [
                _Event(id_, change, reason, when)
                for id_, change in enumerate(changes, self._last_id + 1)
            ]
            self._last_id += len(changes)
            for listener in self._listeners:
                listener.tell(told)

    def end(self) -> None:
        """End all streams, those too that are begun later."""
        with self._lock:
            self._ended = True
            for listener in self._listeners:
                listener.end()

    async def events(self) -> AsyncGenerator[bytes, None]:
        """A stream of server-sent events, of all that happens after its first one."""
        listener = _Listener()
        with self._lock:
            self._listeners.add(listener)
            if self._ended:
                listener.end()
        try:
            yield _READY
            while told := await listener.told(self._silence_s):
                yield told
        finally:
            with self._lock:
                self._listeners.discard(listener)


class _Listener:
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: list[_Event] = []
        self._woken = asyncio.Event()
        self._ended = False

    def tell(self, told: Sequence[_Event]) -> None:
        self._loop.call_soon_threadsafe(self._take, told)

    def end(self) -> None:
        self._loop.call_soon_threadsafe(self._end)

    def _take(self, told: Sequence[_Event]) -> None:
        # Who reads too slowly is not waited for: its stream ends, and is whole up to there.
        if len(self._waiting) + len(told) > _QUEUE_LIMIT:
            self._end()
        if not self._ended:
            self._waiting += told
            self._woken.set()

    def _end(self) -> None:
        self._ended = True
        self._woken.set()

    async def told(self, silence_s: float) -> bytes:
        """What waits, or a ping after a silence; nothing at the end."""
        if not self._waiting and not self._ended:
            self._woken.clear()
            try:
                async with asyncio.timeout(silence_s):
                    await self._woken.wait()
            except TimeoutError:
                return _PING
        waiting, self._waiting = self._waiting, []
        return b"".join(event.encoded() for event in waiting)


def rfc3339(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
