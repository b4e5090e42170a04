"""Finds free ports and the processes that listen on a port."""

import asyncio
import socket
from contextlib import suppress
from functools import cache
from typing import Any

import psutil

from memconform.daemons.resources import process_tree
from memconform.errors import UsageError


@cache
def loopback() -> str:
    """The address of this machine at which daemons listen: 127.0.0.1, or ::1 if it is the only one.

    Raises:
        UsageError: `no_loopback` if neither can be connected to.
    """
    for host in ("127.0.0.1", "::1"):
        if accepts(host) is None:
            return host
    raise UsageError(
        f"a program cannot connect to itself: 127.0.0.1: {accepts('127.0.0.1')},"
        f" ::1: {accepts('::1')}",
        code="no_loopback",
        hint="bring up the loopback interface (`ip link set lo up`), or run with a network",
    )


def accepts(host: str) -> str | None:
    """Why no connection can be made on this machine by way of `host`; None if one can."""
    try:
        with socket.socket(_family(host)) as server, socket.socket(_family(host)) as client:
            server.bind((host, 0))
            server.listen(1)
            client.settimeout(1)
            client.connect(server.getsockname())
    except OSError as error:
        return error.strerror or str(error)
    return None


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def free_port(host: str) -> int:
    """Find a port that is free now; another process may still take it first."""
    with socket.socket(_family(host)) as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port


def listens(pid: int, port: int) -> bool:
    """Whether the process or one of its descendants listens on `port`."""
    for process in process_tree(pid):
        with suppress(psutil.Error):
            for connection in process.net_connections(kind="tcp"):
                if _is_listener(connection, port):
                    return True
    return False


def listener(port: int) -> psutil.Process | None:
    """The process that listens on `port`; None if there is none or it is not visible to us."""
    with suppress(psutil.Error):
        for connection in psutil.net_connections(kind="tcp"):
            if _is_listener(connection, port) and connection.pid is not None:
                return psutil.Process(connection.pid)
    return None


def listener_name(port: int) -> str:
    """Describe the process that listens on `port`, such as `nginx (pid 12)`."""
    with suppress(psutil.Error):
        if (process := listener(port)) is not None:
            return f"{process.name()} (pid {process.pid})"
    return "another process"


def _is_listener(connection: Any, port: int) -> bool:  # noqa: ANN401 - psutil's two tuples
    listening = connection.status == psutil.CONN_LISTEN
    return bool(listening and connection.laddr.port == port)


def is_open(host: str, port: int) -> bool:
    """Whether the port accepts connections."""
    with socket.socket(_family(host)) as probe:
        probe.settimeout(1)
        return probe.connect_ex((host, port)) == 0


async def wait_closed(host: str, port: int, seconds: float) -> bool:
    """Wait until the port is closed; False if it still is open after `seconds`."""
    deadline = asyncio.get_running_loop().time() + seconds
    while is_open(host, port):
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(0.02)
    return True
