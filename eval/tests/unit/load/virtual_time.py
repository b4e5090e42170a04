"""An event loop whose time is virtual: waiting takes none, and only what a test says is slow."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Selector(selectors.SelectSelector):
    """Passes the time that the loop would wait, instead of waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.now += max(timeout or 0.0, 0.0)
        return super().select(0)


class VirtualClock:
    """The clock of a loop in virtual time; a `Clock`."""

    def __init__(self, selector: _Selector) -> None:
        self._selector = selector

    def now(self) -> float:
        return self._selector.now

    async def sleep_until(self, at: float) -> None:
        # short limit: it is virtual
        await asyncio.sleep(max(at - self.now(), 0))

    def compute(self, seconds: float) -> None:
        """Keep the event loop busy, as work of the harness does."""
        self._selector.now += seconds


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self, selector: _Selector) -> None:
        super().__init__(selector)
        self._virtual = selector
        # Timers are due when their instant has come, without the resolution of a real clock.
        self._clock_resolution = 1e-9

    def time(self) -> float:
        return self._virtual.now


def clock_and_loop() -> tuple[VirtualClock, asyncio.AbstractEventLoop]:
    """A clock that begins at 0, and its loop, which the caller closes."""
    selector = _Selector()
    return VirtualClock(selector), _Loop(selector)


def run(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> T:
    """Run to the end, and close the loop."""
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()
