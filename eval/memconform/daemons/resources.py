"""Memory and CPU time of a daemon's process tree, and processes that escaped from it."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address

import psutil

_INTERVAL_SECONDS = 0.25

_WITH_PEER = (
    *(psutil.CONN_SYN_SENT, psutil.CONN_ESTABLISHED, psutil.CONN_CLOSE_WAIT, psutil.CONN_LAST_ACK),
    *(psutil.CONN_FIN_WAIT1, psutil.CONN_FIN_WAIT2, psutil.CONN_CLOSING, psutil.CONN_TIME_WAIT),
)
"""States of a connection that has the address of a server."""

RUN_ID_VARIABLE = "MEMCONFORM_RUN_ID"
"""Set in the environment of every daemon and thus of its children."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What a process tree has used."""

    rss_peak_bytes: int
    """The largest sampled sum over the process tree."""
    cpu_seconds: float
    """User and system time of the processes that were alive when sampled."""
    connections: tuple[str, ...] = ()
    """`host:port` of servers to which connections were seen, in order, if they are watched."""


class Sampler:
    """Samples the memory and CPU time of all that a guard has started, or adopted since."""

    def __init__(self, guard: int, *, watches_connections: bool = False) -> None:
        """Sample the descendants of a process.

        Args:
            guard: its process id; it is no part of the figures.
            watches_connections: whether to collect the addresses that they connect to.
        """
        self._guard = guard
        self._watches_connections = watches_connections
        self._connections: dict[str, None] = {}
        self._peak = 0
        self._cpu = 0.0
        self._ended_cpu = 0.0

    def follow(self, guard: int) -> None:
        """Sample another guard's processes from now on; their CPU time adds to the earlier one."""
        self._ended_cpu += self._cpu
        self._cpu, self._guard = 0.0, guard

    async def run(self) -> None:
        """Sample every quarter of a second until cancelled."""
        while True:
            # In a thread, because reading /proc takes a millisecond, which would add to latencies.
            await asyncio.to_thread(self.sample)
            await asyncio.sleep(_INTERVAL_SECONDS)

    def sample(self) -> None:
        """Take one sample."""
        rss, cpu = 0, 0.0
        tree = process_tree(self._guard)[1:]
        if self._watches_connections:
            self._connections |= dict.fromkeys(_outgoing(tree))
        for process in tree:
            with suppress(psutil.Error), process.oneshot():
                rss += process.memory_info().rss
                times = process.cpu_times()
                cpu += times.user + times.system
        if rss:
            self._peak = max(self._peak, rss)
            self._cpu = max(self._cpu, cpu)

    def result(self) -> Resources:
        """The peak values so far."""
        cpu = round(self._ended_cpu + self._cpu, 3)
        return Resources(self._peak, cpu, tuple(self._connections))


def _outgoing(tree: Sequence[psutil.Process]) -> list[str]:
    """The servers outside the tree to which its processes have TCP connections."""
    connections = []
    for process in tree:
        with suppress(psutil.Error):
            connections += process.net_connections(kind="tcp")
    served = {c.laddr.port for c in connections if c.status == psutil.CONN_LISTEN}
    return [
        _address(c.raddr.ip, c.raddr.port)
        for c in connections
        if c.status in _WITH_PEER and c.laddr.port not in served
        if c.raddr.port not in served or not ip_address(c.raddr.ip).is_loopback
    ]


def _address(host: str, port: int) -> str:
    host = host.removeprefix("::ffff:")
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


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
