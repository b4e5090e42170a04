"""The time that a daemon has for indexing what it has acknowledged."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from memconform.client.failures import ContractViolatedError
from memconform.contract.core import NO_CHUNKS
from memconform.errors import DaemonError
from memconform.printing.logs import Logger

_log = Logger()

_PAUSE_SECONDS = 0.2
_LONGEST_PAUSE_SECONDS = 5.0
"""Pauses between attempts to prove an index that may not be complete yet."""
_PASSING_FAULTS = ("not_searchable", "index_incomplete", "bad_trace")
"""Codes of a failed proof that may only mean that indexing has not finished. A daemon that embeds
in the background was seen to report mode hybrid without an embedder until it had finished; in one
of 40 starts its first search by vectors came before them, and found nothing (`NO_CHUNKS`)."""
_WITHOUT_RERANKER = "without reranking"
"""In a `bad_trace` that lasts: a reranker is not waited for, because it indexes nothing."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Clock:
    """Measures and spends time, in seconds."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


SYSTEM_CLOCK = Clock()


class StillPendingError(DaemonError):
    """Documents are still pending although the time for indexing is over."""


class IndexingTime:
    """The time for indexing, which begins now: after the last document."""

    def __init__(self, seconds: float, clock: Clock = SYSTEM_CLOCK) -> None:
        self.seconds = seconds
        self.clock = clock
        self.is_closed = False
        self._began = clock.now()

    def close(self) -> None:
        """End the time, because the daemon claims that nothing is left to index."""
        self.is_closed = True

    @property
    def elapsed(self) -> float:
        """Seconds since the last document."""
        return self.clock.now() - self._began

    @property
    def is_over(self) -> bool:
        """Whether a failed attempt is the last one."""
        return self.is_closed or self.elapsed >= self.seconds

    async def repeat(self, attempt: Callable[[bool], Awaitable[T]]) -> tuple[T, float | None]:
        """Repeat what may fail only because indexing has not finished, until the time is over.

        Args:
            attempt: Makes an attempt; called with whether it is the last one.

        Returns:
            What the attempt returned, and the seconds after which it began; None for the first one.

        Raises:
            DaemonError, CallError: from the last attempt, saying when that began.
        """
        pause = _PAUSE_SECONDS
        began: float | None = None
        while True:
            is_last = self.is_over
            try:
                return await attempt(is_last), began
            except (DaemonError, ContractViolatedError) as error:
                if is_last or self.is_closed or not _may_pass(error):
                    if began is not None:
                        error.message += f"; last tried after {began:.3g} s"
                        error.args = (error.message,)
                    raise
                _log.info("index not complete yet", after_s=self.elapsed, reason=error.message)
            await self.clock.sleep(max(0.0, min(pause, self.seconds - self.elapsed)))
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
            began = self.elapsed


def _may_pass(error: DaemonError | ContractViolatedError) -> bool:
    if isinstance(error, StillPendingError) or _WITHOUT_RERANKER in error.message:
        return False
    return error.code in _PASSING_FAULTS or error.message.startswith(NO_CHUNKS)
