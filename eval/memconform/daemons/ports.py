"""Ports: a free one, who listens on one, and whether it is closed again."""

import asyncio
import socket
from contextlib import suppress
from typing import Any

import psutil

from memconform.daemons.resources import process_tree


def free_port(host: str) -> int:
    """A port that was free a moment ago; another process may still take it first."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port


def listens(pid: int, port: int) -> bool:
    """Whether the process or a descendant of it holds the listening socket on `port`."""
    for process in process_tree(pid):
        with suppress(psutil.Error):
            for connection in process.net_connections(kind="tcp"):
                if _is_listener(connection, port):
                    return True
    return False


def listener(port: int) -> psutil.Process | None:
    """The process that listens on `port`; None where there is none, or none that we may see."""
    with suppress(psutil.Error):
        for connection in psutil.net_connections(kind="tcp"):
            if _is_listener(connection, port) and connection.pid is not None:
                return psutil.Process(connection.pid)
    return None


def listener_name(port: int) -> str:
    """Which process listens on `port`, as far as we may see: `nginx (pid 12)`."""
    with suppress(psutil.Error):
        if (process := listener(port)) is not None:
            return f"{process.name()} (pid {process.pid})"
    return "another process"


def _is_listener(connection: Any, port: int) -> bool:  # noqa: ANN401 - psutil's two tuples
    listening = connection.status == psutil.CONN_LISTEN
    return bool(listening and connection.laddr.port == port)


def is_open(host: str, port: int) -> bool:
    """Whether something accepts connections there."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.settimeout(1)
        return probe.connect_ex((host, port)) == 0


async def wait_closed(host: str, port: int, seconds: float) -> bool:
    """Whether the port closes within `seconds`."""
    end = asyncio.get_running_loop().time() + seconds
    while is_open(host, port):
        if asyncio.get_running_loop().time() > end:
            return False
        await asyncio.sleep(0.02)
    return True
