"""Whether there is use in more calls to a daemon."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from memconform.client.failures import CallError, CallTimeoutError, DaemonFailedError
from memconform.daemons.runner import Daemon
from memconform.errors import DaemonError

IN_A_ROW = 3
_DEATH_SECONDS = 0.5
"""How long a broken connection may wait for the news that the daemon has died."""

T = TypeVar("T")


class DaemonMonitor:
    """Makes calls to one daemon, and knows when it is dead, gone or stuck."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._died = asyncio.ensure_future(daemon.wait_exit())
        self._died.add_done_callback(self._on_death)
        self._timeouts = self._unreachable = 0
        self.halted: DaemonError | None = None
        """Why nothing more is to be asked, once that is so."""

    def close(self) -> None:
        self._died.cancel()

    async def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """What a call brings, unless the daemon dies over it; raises CallError then, too."""
        running = asyncio.ensure_future(coroutine)
        try:
            await asyncio.wait({running, self._died}, return_when=asyncio.FIRST_COMPLETED)
            if running.done() and _broke(running):
                # A connection breaks a moment before its daemon is known to be dead.
                await asyncio.wait({self._died}, timeout=_DEATH_SECONDS)
            if self._died.done() and (not running.done() or _broke(running)):
                raise DaemonFailedError(
                    "daemon_died", f"the daemon died over this question: {self._died.result()}"
                )
            return running.result()
        finally:
            running.cancel()

    async def cause_of(self, error: DaemonError | DaemonFailedError) -> DaemonError:
        """Why something failed: that the daemon is dead, where it is, says more than what broke."""
        await asyncio.wait({self._died}, timeout=_DEATH_SECONDS)
        if self.halted is not None:
            return self.halted
        if isinstance(error, DaemonError):
            return error
        return DaemonError(error.message, code=error.code, hint="its log says more")

    def answered(self) -> None:
        """Note a question that brought an answer."""
        self._timeouts = self._unreachable = 0

    def failed(self, error: CallError) -> None:
        """Note a question that brought none; several in a row are enough."""
        self._unreachable = self._unreachable + 1 if error.code == "unreachable" else 0
        if self._unreachable >= IN_A_ROW:
            self.halt(
                DaemonError(
                    f"nobody listens at {self._daemon.base_url} any more",
                    code="daemon_gone",
                    hint="the daemon was not started by the harness; its own log says more",
                )
            )
        self._timeouts = self._timeouts + 1 if isinstance(error, CallTimeoutError) else 0
        if self._timeouts >= IN_A_ROW:
            self.halt(
                DaemonError(
                    f"{IN_A_ROW} questions in a row timed out",
                    code="timeouts_in_a_row",
                    hint="is the daemon stuck? --timeout and its like set the limits",
                    excerpt=self._daemon.log_tail(),
                )
            )

    def _on_death(self, died: "asyncio.Future[str]") -> None:
        if not died.cancelled():
            self.halt(
                DaemonError(
                    f"the daemon died: {died.result()}",
                    code="daemon_died",
                    hint="what was asked so far is kept; its log says more",
                    excerpt=self._daemon.log_tail(),
                )
            )

    def halt(self, error: DaemonError) -> None:
        """Ask nothing more, because of `error`; the first reason stands."""
        self.halted = self.halted or error


def _broke(call: "asyncio.Future[Any]") -> bool:
    """Whether the call ended because nobody was at the other end any more."""
    error = call.exception()
    return isinstance(error, DaemonFailedError) and error.code in (
        "unreachable",
        "connection_broken",
    )
