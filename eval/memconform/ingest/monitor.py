"""Detects when further calls to a daemon are pointless."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from memconform.client.failures import CallError, CallTimeoutError, DaemonFailedError
from memconform.daemons.sdk_runner import Daemon
from memconform.errors import DaemonError

TIMEOUTS = "timeouts_in_a_row"
"""The code of the error that gives up a daemon which lives and does not answer."""
IN_A_ROW = 3
"""Consecutive failures of a kind after which the daemon is given up."""
_DEATH_SECONDS = 2.0
"""How long to wait, after a broken connection, for the report that the daemon has died."""

T = TypeVar("T")


class DaemonMonitor:
    """Makes calls to one daemon and halts when it is dead, gone or stuck."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._death = asyncio.ensure_future(daemon.wait_exit())
        self._death.add_done_callback(self._on_death)
        self._timeouts = self._unreachable = 0
        self.halted: DaemonError | None = None
        """Why no more calls should be made; None while they should."""

    def close(self) -> None:
        """Stop watching the daemon."""
        self._death.cancel()

    async def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Await a call, unless the daemon dies during it.

        Raises:
            CallError: from the call.
            DaemonFailedError: `daemon_died` if the daemon died.
        """
        running = asyncio.ensure_future(coroutine)
        try:
            await asyncio.wait({running, self._death}, return_when=asyncio.FIRST_COMPLETED)
            if running.done() and _broke(running):
                # A connection breaks a moment before the death of its daemon is known.
                await asyncio.wait({self._death}, timeout=_DEATH_SECONDS)
            if self._death.done() and (not running.done() or _broke(running)):
                raise DaemonFailedError(
                    "daemon_died", f"the daemon died during this question: {self._death.result()}"
                )
            return running.result()
        finally:
            running.cancel()

    async def cause_of(self, error: DaemonError | DaemonFailedError) -> DaemonError:
        """The root cause of `error`: the daemon's death if it died, else `error` itself."""
        await asyncio.wait({self._death}, timeout=_DEATH_SECONDS)
        if self.halted is not None:
            return self.halted
        if isinstance(error, DaemonError):
            return error
        return DaemonError(error.message, code=error.code, hint="see the daemon's log")

    def answered(self) -> None:
        """Record an answered question, which resets the counts of failures."""
        self._timeouts = self._unreachable = 0

    def failed(self, error: CallError) -> None:
        """Record an unanswered question; halts after `IN_A_ROW` timeouts or refused connections."""
        self._unreachable = self._unreachable + 1 if error.code == "unreachable" else 0
        if self._unreachable >= IN_A_ROW:
            self.halt(
                DaemonError(
                    f"nothing listens at {self._daemon.base_url} any more",
                    code="daemon_gone",
                    hint="memconform did not start this daemon; see its own log",
                )
            )
        self._timeouts = self._timeouts + 1 if isinstance(error, CallTimeoutError) else 0
        if self._timeouts >= IN_A_ROW:
            self.halt(
                DaemonError(
                    f"{IN_A_ROW} questions in a row timed out",
                    code=TIMEOUTS,
                    hint="check whether the daemon is stuck, or raise the limits with --timeout",
                    excerpt=self._daemon.log_tail(),
                )
            )

    def _on_death(self, death: "asyncio.Future[str]") -> None:
        if not death.cancelled():
            self.halt(
                DaemonError(
                    f"the daemon died: {death.result()}",
                    code="daemon_died",
                    hint="results so far are kept; see the daemon's log",
                    excerpt=self._daemon.log_tail(),
                )
            )

    def halt(self, error: DaemonError) -> None:
        """Stop making calls because of `error`; the first reason is kept."""
        self.halted = self.halted or error


def _broke(call: "asyncio.Future[Any]") -> bool:
    """Whether the call failed because the other end was gone."""
    error = call.exception()
    return isinstance(error, DaemonFailedError) and error.code in (
        "unreachable",
        "connection_broken",
    )
