"""What a `process` step reports about the daemon's process, and how it fills its disk."""

import resource
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psutil

from memconform.daemons.resources import process_tree

_FULL_DISK_BYTES = 2**20
"""What a file may have on a full disk: enough for the daemon's log, which has to work."""


@dataclass(frozen=True, slots=True)
class ProcessReport:
    """The result of a `process` step."""

    alive: bool
    """Whether the daemon runs, or for `fails_to_start` whether it started."""
    ended: str = ""
    """How it exited: `exit status 0`, `killed by SIGKILL`."""
    log: str = ""
    """The daemon's output; only its last lines if it has exited or did not start."""
    listening: tuple[str, ...] = ()
    """Addresses on which its process tree listens."""
    connections: int = 0
    """Number of established connections of its process tree, including the harness's own."""

    def value(self) -> dict[str, Any]:
        """Return the report as JSON."""
        return {name: getattr(self, name) for name in self.__slots__} | {
            "listening": list(self.listening)
        }


def inspect_tree(pid: int, log: str) -> ProcessReport:
    """Report the listening addresses and connections of a process and its descendants."""
    listening: set[str] = set()
    connections = 0
    for process in process_tree(pid):
        try:
            for connection in process.net_connections(kind="inet"):
                if connection.status == psutil.CONN_LISTEN:
                    listening.add(connection.laddr.ip)
                elif connection.status == psutil.CONN_ESTABLISHED:
                    connections += 1
        except psutil.NoSuchProcess:
            continue
    return ProcessReport(
        alive=True,
        log=log,
        listening=tuple(sorted(listening)),
        connections=connections,
    )


def limit_files(pid: int, *, full: bool) -> None:
    """Let a process and its descendants write no file beyond 1 MiB, or as much as this process.

    Only Linux supports this. They ignore SIGXFSZ as their guard does, so that a write fails.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    limits = (_FULL_DISK_BYTES if full else soft, hard)
    for process in process_tree(pid):
        with suppress(ProcessLookupError):
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, limits)
