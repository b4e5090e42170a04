"""Progress as plain lines, for a standard error that is no terminal."""

import threading
import time
from datetime import timedelta

from rich.progress import Progress, Task

from memconform.printing.columns import is_running, rate
from memconform.printing.console import SafeConsole

INTERVAL_S = 10.0
"""Time between two lines: a log of an hour gets 360 of them."""


class PlainProgress:
    """A thread that prints the state of progress bars every `INTERVAL_S` seconds.

    It needs no events, so that a long step that has none, such as ingest, is not taken for a hang.
    """

    def __init__(self, console: SafeConsole, progress: Progress) -> None:
        self._console = console
        self._progress = progress
        self._started = time.monotonic()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._started = time.monotonic()
        self._thread = threading.Thread(target=self._print, name="progress", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop for good; nothing is printed after this returns."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _print(self) -> None:
        while not self._ended.wait(INTERVAL_S):
            states = [_state(task) for task in self._progress.tasks if is_running(task)]
            if states:
                seconds = time.monotonic() - self._started
                self._console.print(f"  {'; '.join(states)} after {seconds:,.0f} s")


def _state(task: Task) -> str:
    if task.total is None:
        return task.description
    state = f"{task.description}: {task.completed:,.0f} of {task.total:,.0f}"
    if speed := rate(task):
        state += f" ({speed}, {timedelta(seconds=round(task.time_remaining or 0))} left)"
    return state
