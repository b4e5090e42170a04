"""Memory and CPU of a daemon's process tree."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass

import psutil

_INTERVAL_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Resources:
    rss_peak_bytes: int
    """The largest sum over the process tree that a sample saw."""
    rss_last_bytes: int
    cpu_seconds: float
    """User and system time of the processes that were alive at the last sample."""
    samples: int


class Sampler:
    """Samples a process tree every quarter of a second until it is cancelled."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._peak = self._last = self._samples = 0
        self._cpu = 0.0

    async def run(self) -> None:
        while True:
            self.sample()
            await asyncio.sleep(_INTERVAL_SECONDS)

    def sample(self) -> None:
        rss, cpu = 0, 0.0
        for process in process_tree(self._pid):
            with suppress(psutil.Error), process.oneshot():
                rss += process.memory_info().rss
                times = process.cpu_times()
                cpu += times.user + times.system
        if rss:
            self._last = rss
            self._peak = max(self._peak, rss)
            self._cpu = max(self._cpu, cpu)
            self._samples += 1

    def result(self) -> Resources:
        return Resources(self._peak, self._last, round(self._cpu, 3), self._samples)


def process_tree(pid: int) -> list[psutil.Process]:
    """The process and all its descendants; empty once it is gone."""
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.Error:
        return []
