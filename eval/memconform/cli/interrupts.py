"""How a verb that takes long ends when it is told to."""

import asyncio
import signal
import sys
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from memconform.cli.streams import drop_output
from memconform.errors import ExitCode


def run_to_end(work: Coroutine[Any, Any, ExitCode]) -> ExitCode:
    """What `work` returns; one that a signal has cancelled is an interrupted one."""
    try:
        return asyncio.run(work)
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


_INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def cancel_on_signals() -> None:
    """Let the first Ctrl-C, SIGTERM or hang-up end the run with its results.

    More of them change nothing: a second one would break off the writing of the results. A hang-up
    that is ignored from the start, as under nohup, stays ignored.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    interrupts = [number for number in _INTERRUPTS if not _is_ignored_hang_up(number)]
    on_terminal = sys.stdout.isatty()

    def cancel(received: int, _: object) -> None:
        if received == signal.SIGHUP and on_terminal:
            # The terminal is gone, and would end the run as an output that cannot be written.
            drop_output()
        # Handlers, the loop's own too, are taken back before the process ends: one more would be
        # its death then.
        for number in interrupts:
            signal.signal(number, signal.SIG_IGN)
        if task is not None:
            with suppress(RuntimeError):  # the loop is closed: there is nothing left to end
                loop.call_soon_threadsafe(task.cancel)

    for number in interrupts:
        signal.signal(number, cancel)


def _is_ignored_hang_up(number: signal.Signals) -> bool:
    return number is signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN
