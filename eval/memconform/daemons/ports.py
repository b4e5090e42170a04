"""Loopback addresses, free ports, and the processes that listen on a port."""

import asyncio
import ipaddress
import socket
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

import psutil

from memconform.daemons.resources import process_tree
from memconform.errors import DaemonError, UsageError

LOOPBACK = ("127.0.0.1", "::1")
_WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared with, not bound


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens."""

    host: str
    """A numeric address, without brackets."""
    port: int

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://{bracketed(self.host)}:{self.port}"


def bracketed(host: str) -> str:
    """A host as it stands in an address: IPv6 in brackets."""
    return f"[{host}]" if ":" in host else host


@cache
def loopback_host() -> str:
    """The loopback address of this machine: 127.0.0.1, or ::1 if it is the only one.

    Raises:
        UsageError: `no_loopback` if neither can be connected to.
    """
    for host in LOOPBACK:
        if accepts(host) is None:
            return host
    reasons = ", ".join(f"{host}: {accepts(host)}" for host in LOOPBACK)
    raise UsageError(
        f"a program cannot connect to itself: {reasons}",
        code="no_loopback",
        hint="bring up the loopback interface (`ip link set lo up`), or run with a network",
    )


def accepts(host: str) -> str | None:
    """Why no connection can be made on this machine by way of `host`; None if one can."""
    try:
        with _socket(host) as server, _socket(host) as client:
            server.bind((host, 0))
            server.listen(1)
            client.settimeout(1)
            client.connect(server.getsockname())
    except OSError as error:
        return error.strerror or str(error)
    return None


def loopback_addresses(host: str) -> list[str]:
    """The numeric loopback addresses of an announced host; empty if it is not a loopback host.

    A host that stands for all interfaces, such as 0.0.0.0, is reached at its loopback address.
    """
    name = host.removeprefix("[").removesuffix("]")
    if name in _WILDCARDS:
        return [_WILDCARDS[name]]
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    addresses = [ipaddress.ip_address(str(each[4][0]).partition("%")[0]) for each in found]
    plain = [getattr(each, "ipv4_mapped", None) or each for each in addresses]
    return list(dict.fromkeys(str(each) for each in plain if each.is_loopback))


def _socket(host: str) -> socket.socket:
    return socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)


def free_port(host: str) -> int:
    """Find a port that is free now; another process may still take it first.

    Raises:
        DaemonError: `no_port` if there is none.
    """
    try:
        with _socket(host) as probe:
            probe.bind((host, 0))
            port: int = probe.getsockname()[1]
            return port
    except OSError as error:
        raise DaemonError(
            f"no port of {host} can be used: {error.strerror}",
            code="no_port",
            hint="daemons listen on the loopback interface: check that it is up, and how many ports"
            " and open files are left",
        ) from error


def listens(pid: int, host: str, port: int) -> bool:
    """Whether the process or one of its descendants listens on a numeric address."""
    for process in process_tree(pid):
        with suppress(psutil.Error):
            for connection in process.net_connections(kind="tcp"):
                if _is_listener(connection, port) and _covers(connection.laddr.ip, host):
                    return True
    return False


def _covers(bound: str, host: str) -> bool:
    """Whether a socket bound to one address accepts connections to another one.

    A socket bound to `::` accepts IPv4 too, unless its process has turned that off.
    """
    return bound in (host, "::", f"::ffff:{host}") or _WILDCARDS.get(bound) == host


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
    """Whether the port accepts connections; False too where the host's family is missing."""
    with suppress(OSError), _socket(host) as probe:
        probe.settimeout(1)
        return probe.connect_ex((host, port)) == 0
    return False


async def wait_closed(host: str, port: int, seconds: float) -> bool:
    """Wait until the port is closed; False if it still is open after `seconds`."""
    deadline = asyncio.get_running_loop().time() + seconds
    while is_open(host, port):
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(0.02)
    return True
