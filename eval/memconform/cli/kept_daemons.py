"""`--keep`: daemons stay up after a command until the user ends it."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Self

from memconform.daemons.sdk_runner import Daemon
from memconform.printing.escaping import Lines
from memconform.printing.output import echo


@dataclass(frozen=True, slots=True)
class KeptDaemon:
    """A running daemon to name and to wait for."""

    sdk: str
    address: str
    wait_exit: Callable[[], Awaitable[str]]
    """Waits for its end and returns how it ended; may never return."""
    pid: int | None = None
    log_tail: Callable[[], str] = str

    @classmethod
    def of(cls, sdk: str, daemon: Daemon) -> Self:
        """The daemon, which memconform may have started."""
        pid = None if daemon.process is None else daemon.process.pid
        return cls(sdk, daemon.base_url, daemon.wait_exit, pid, daemon.log_tail)


async def wait_until_interrupted(daemons: Sequence[KeptDaemon], hints: Sequence[str] = ()) -> None:
    """Name running daemons and wait for Ctrl-C, a signal, or the end of all of them.

    `hints` are printed below the addresses.
    """
    sys.stdout.flush()  # a pipe gets the result now, and not when the waiting ends
    waiting: dict[asyncio.Future[str], KeptDaemon] = {
        asyncio.ensure_future(daemon.wait_exit()): daemon for daemon in daemons
    }
    for daemon in daemons:
        process = "" if daemon.pid is None else f", process {daemon.pid}"
        echo(f"kept: {daemon.sdk} at {daemon.address}{process}", err=True)
    for hint in hints:
        echo(Lines(hint), err=True)
    echo(f"to stop: Ctrl-C, or kill {os.getpid()}", err=True)
    try:
        while waiting:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for future in done:
                _show_end(waiting.pop(future), future.result())
    except asyncio.CancelledError:
        # The command has its result already; the signal ends nothing but the waiting.
        if (task := asyncio.current_task()) is not None:
            task.uncancel()
    finally:
        for future in waiting:
            future.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


def _show_end(daemon: KeptDaemon, ending: str) -> None:
    echo(f"ended: {daemon.sdk} at {daemon.address}, {ending}", err=True)
    for line in daemon.log_tail().splitlines():
        echo(f"  | {line}", err=True)
