"""How many calls may be in flight: fewer when the service asks for it, more when it recovers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_COOLDOWN_SECONDS = 1.0
"""Calls that were sent together are refused together; they count as one refusal."""


class Limiter:
    """Additive increase, multiplicative decrease (Chiu & Jain 1989), for one provider."""

    def __init__(self, most: int) -> None:
        """Allow `most` calls at once, until the service refuses one."""
        self._most = most
        self._limit = float(most)
        self._in_flight = 0
        self._changed = asyncio.Condition()
        self._lowered_at = -_COOLDOWN_SECONDS
        self._resume_at = 0.0

    @property
    def limit(self) -> int:
        """Calls allowed at once by now."""
        return int(self._limit)

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait until a call may be sent; hold the slot until the block ends."""
        loop = asyncio.get_running_loop()
        async with self._changed:
            await self._changed.wait_for(lambda: self._in_flight < self.limit)
            self._in_flight += 1
        try:
            await asyncio.sleep(max(0.0, self._resume_at - loop.time()))
            yield
        finally:
            async with self._changed:
                self._in_flight -= 1
                self._changed.notify_all()

    def succeeded(self) -> None:
        """Let the limit recover: by one call for each round of calls that went well."""
        self._limit = min(float(self._most), self._limit + 1 / self._limit)

    def throttled(self, pause_s: float) -> None:
        """Halve the limit, and send nothing for `pause_s` seconds."""
        now = asyncio.get_running_loop().time()
        self._resume_at = max(self._resume_at, now + pause_s)
        if now - self._lowered_at >= _COOLDOWN_SECONDS:
            self._lowered_at = now
            self._limit = max(1.0, self._limit / 2)
