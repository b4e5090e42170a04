"""Orderly end of long commands on Ctrl-C, SIGTERM and hang-up."""

import asyncio
import signal
import sys
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from memconform.cli.standard_streams import drop_output

_Result = TypeVar("_Result")


def run_to_end(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Run `work` and return its result.

    Raises:
        KeyboardInterrupt: if a signal cancelled it.
    """
    try:
        return asyncio.run(work)  # noqa: TID251 - see the docstring
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


_INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def cancel_on_signals() -> None:
    """Cancel the current task on the first Ctrl-C, SIGTERM or hang-up, so that results are written.

    Later signals are ignored, because they would interrupt the writing of results. A hang-up that
    is ignored from the start, as under nohup, stays ignored.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    interrupts = [number for number in _INTERRUPTS if not _is_ignored_hang_up(number)]
    on_terminal = sys.stdout.isatty()

    def cancel(received: int, _: object) -> None:
        if received == signal.SIGHUP and on_terminal:
            # The terminal is gone; writing to it would end the run as an output error.
            drop_output()
        # All handlers, the loop's own too, are removed before the process ends; another signal
        # would then kill it.
        for number in interrupts:
            signal.signal(number, signal.SIG_IGN)
        if task is not None:
            with suppress(RuntimeError):  # the loop is closed, so nothing is left to cancel
                loop.call_soon_threadsafe(task.cancel)

    for number in interrupts:
        signal.signal(number, cancel)


def _is_ignored_hang_up(number: signal.Signals) -> bool:
    return number is signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN
