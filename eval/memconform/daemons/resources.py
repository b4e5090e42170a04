"""Memory and CPU of a daemon's process tree."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass

import psutil

_INTERVAL_SECONDS = 0.25

RUN_ID_VARIABLE = "MEMCONFORM_RUN_ID"
"""Set for every daemon, and so for its children."""


@dataclass(frozen=True, slots=True)
class Resources:
    rss_peak_bytes: int
    """The largest sum over the process tree that a sample saw."""
    cpu_seconds: float
    """User and system time of the process tree, as far as it was alive when sampled."""


class Sampler:
    """Samples a process tree every quarter of a second until it is cancelled."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._peak = 0
        self._cpu = 0.0

    async def run(self) -> None:
        while True:
            # In a thread: reading /proc takes a millisecond, which latencies would show.
            await asyncio.to_thread(self.sample)
            await asyncio.sleep(_INTERVAL_SECONDS)

    def sample(self) -> None:
        rss, cpu = 0, 0.0
        for process in process_tree(self._pid):
            with suppress(psutil.Error), process.oneshot():
                rss += process.memory_info().rss
                times = process.cpu_times()
                cpu += times.user + times.system
        if rss:
            self._peak = max(self._peak, rss)
            self._cpu = max(self._cpu, cpu)

    def result(self) -> Resources:
        return Resources(self._peak, round(self._cpu, 3))


def process_tree(pid: int) -> list[psutil.Process]:
    """The process and all its descendants; empty once it is gone."""
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.Error:
        return []


def is_stranger(process: psutil.Process, run_id: str, began: float | None) -> bool:
    """Whether a process cannot come from the daemon of a run that began then, in epoch seconds.

    It cannot where it is older than the daemon, or carries the id of another run.
    """
    with suppress(psutil.Error):
        if began is not None and process.create_time() < began:
            return True
        return process.environ().get(RUN_ID_VARIABLE, run_id) != run_id
    return False


def end_strays(run_id: str) -> list[str]:
    """Kill what still carries a run's id in its environment; returns their names.

    A child that left its daemon's process group escapes the signals that the group gets. Where
    environments of other processes cannot be read, none is found.
    """
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get(RUN_ID_VARIABLE) == run_id:
                found.append(f"{process.name()} (pid {process.pid})")
                process.kill()
    return found
