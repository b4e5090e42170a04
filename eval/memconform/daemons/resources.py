"""Memory and CPU time of a daemon's process tree, and processes that escaped from it."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass

import psutil

_INTERVAL_SECONDS = 0.25

RUN_ID_VARIABLE = "MEMCONFORM_RUN_ID"
"""Set in the environment of every daemon and thus of its children."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What a process tree has used."""

    rss_peak_bytes: int
    """The largest sampled sum over the process tree."""
    cpu_seconds: float
    """User and system time of the processes that were alive when sampled."""


class Sampler:
    """Samples the memory and CPU time of a process tree."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._peak = 0
        self._cpu = 0.0
        self._ended_cpu = 0.0

    def follow(self, pid: int) -> None:
        """Sample another process from now on, whose CPU time adds to that of the earlier ones."""
        self._ended_cpu += self._cpu
        self._cpu, self._pid = 0.0, pid

    async def run(self) -> None:
        """Sample every quarter of a second until cancelled."""
        while True:
            # In a thread, because reading /proc takes a millisecond, which would add to latencies.
            await asyncio.to_thread(self.sample)
            await asyncio.sleep(_INTERVAL_SECONDS)

    def sample(self) -> None:
        """Take one sample."""
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
        """The peak values so far."""
        return Resources(self._peak, round(self._ended_cpu + self._cpu, 3))


def process_tree(pid: int) -> list[psutil.Process]:
    """The process and all its descendants; empty once the process has ended."""
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.Error:
        return []


def is_unrelated(process: psutil.Process, run_id: str, started_at: float | None) -> bool:
    """Whether a process cannot stem from a run's daemon, which started at `started_at`.

    It cannot if it is older than the daemon (in epoch seconds) or carries another run's id.
    """
    with suppress(psutil.Error):
        if started_at is not None and process.create_time() < started_at:
            return True
        return process.environ().get(RUN_ID_VARIABLE, run_id) != run_id
    return False


def end_strays(run_id: str) -> list[str]:
    """Kill processes that still carry a run's id in their environment; returns their names.

    A child that left its daemon's process group escapes signals to the group. If the environments
    of other processes cannot be read, none is found.
    """
    strays = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get(RUN_ID_VARIABLE) == run_id:
                strays.append(f"{process.name()} (pid {process.pid})")
                process.kill()
    return strays
