"""A daemon is reached at the loopback address that it announces, whatever its form."""

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from memconform.bench.raw_http import RawExchange, RawRequest, serving
from memconform.daemons import readiness
from memconform.daemons.manifest import Ready
from memconform.daemons.ports import (
    Address,
    free_port,
    is_open,
    listens,
    loopback_addresses,
    loopback_host,
)
from memconform.daemons.process import DaemonProcess
from memconform.daemons.readiness import await_ready
from memconform.daemons.sdk_runner import Launch
from memconform.errors import DaemonError

_ALL = "0.0.0.0"  # noqa: S104 - what a daemon may announce


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


_needs_ipv6 = pytest.mark.skipif(not _has_ipv6(), reason="this machine has no ::1")


class _Process:
    """This process, in place of a daemon's, with an output."""

    def __init__(self, output: str) -> None:
        self.pid = os.getpid()
        self.log = Path("daemon.log")
        self._output = output.encode()

    def output(self, start: int) -> bytes:
        return self._output[start:]

    def tail(self) -> str:
        return self._output.decode()

    async def wait(self) -> str:
        ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        return await ended


async def _healthy(request: RawRequest, exchange: RawExchange) -> None:
    del request
    await exchange.json({"ok": True})


async def _ready(bound: str, output: str, *, chosen: bool = False) -> str:
    """The host at which a daemon is found that listens on one address and prints a line."""
    async with serving(_healthy, bound, 0) as port:
        process = cast("DaemonProcess", _Process(output.format(port=port)))
        launch = Launch(run_id="r", folder=Path(), host="127.0.0.1")
        address = await await_ready(
            process, launch, port if chosen else 0, name="mine", ready=Ready()
        )
        assert address.port == port
    return address.host


@pytest.mark.parametrize(
    ("bound", "announced", "host"),
    [
        ("127.0.0.1", "127.0.0.1", "127.0.0.1"),
        (_ALL, _ALL, "127.0.0.1"),
        ("127.0.0.2", "127.0.0.2", "127.0.0.2"),
        ("127.0.0.1", "[::ffff:127.0.0.1]", "127.0.0.1"),
        ("127.0.0.1", "", "127.0.0.1"),
        pytest.param("::1", "[::1]", "::1", marks=_needs_ipv6),
        pytest.param("::", "[::]", "::1", marks=_needs_ipv6),
    ],
)
async def test_the_host_that_a_daemon_announces_is_used(
    bound: str, announced: str, host: str
) -> None:
    """The port was taken from the line, and the host was 127.0.0.1 all the same (issue 36)."""
    line = f"x\nlistening on http://{announced}:{{port}}\n"
    assert await _ready(bound, line) == host
    assert await _ready(bound, line, chosen=True) == host


@pytest.mark.parametrize("bound", ["127.0.0.1", pytest.param("::1", marks=_needs_ipv6)])
async def test_a_name_is_reached_at_whichever_of_its_addresses_listens(
    bound: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "loopback_addresses", lambda _: ["::1", "127.0.0.1"])
    assert await _ready(bound, "listening on http://localhost:{port}\n") == bound


@_needs_ipv6
async def test_a_daemon_that_announces_nothing_may_take_localhost_for_ipv6() -> None:
    assert await _ready("::1", "", chosen=True) == "::1"


@pytest.mark.parametrize("announced", ["192.0.2.7", "[2001:db8::1]", "no.such.host.invalid"])
async def test_an_announced_host_that_is_not_loopback_ends_in_a_sentence(announced: str) -> None:
    with pytest.raises(DaemonError, match=r"is not the address or the name of a loop") as caught:
        await _ready("127.0.0.1", f"listening on http://{announced}:{{port}}\n")
    assert caught.value.code == "daemon_not_loopback"
    assert f"http://{announced}:" in caught.value.message


async def test_a_daemon_on_a_chosen_port_may_print_the_name_of_its_machine() -> None:
    output = "listening on http://192.0.2.7:{port}\n"
    assert await _ready("127.0.0.1", output, chosen=True) == "127.0.0.1"


def test_names_and_wildcards_stand_for_loopback_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    assert loopback_addresses(_ALL) == ["127.0.0.1"]
    assert loopback_addresses("[::]") == ["::1"]
    assert loopback_addresses("a" * 70) == []
    known = [(0, 0, 0, "", (each, 0)) for each in ("fe80::1%lo", "::1", "192.0.2.1", "127.0.0.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: known)
    assert loopback_addresses("mine") == ["::1", "127.0.0.1"]


@_needs_ipv6
async def test_a_socket_of_the_other_family_is_not_the_daemons() -> None:
    """A foreign server at 127.0.0.1 passed for the daemon if that listened on [::1] at the port."""
    async with serving(_healthy, "::1", 0) as port:
        assert listens(os.getpid(), "::1", port)
        assert not listens(os.getpid(), "127.0.0.1", port)
        assert is_open("::1", port)
    async with serving(_healthy, _ALL, 0) as port:
        assert listens(os.getpid(), "127.0.0.1", port)
        assert not listens(os.getpid(), "::1", port)


@pytest.fixture
def _without_ipv4(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine whose loopback interface has ::1 alone."""
    bind = socket.socket.bind

    class _Socket(socket.socket):
        def bind(self, address: tuple[str, int]) -> None:  # type: ignore[override]
            if ":" not in address[0]:
                raise OSError(99, "Cannot assign requested address")
            bind(self, address)

    monkeypatch.setattr(socket, "socket", _Socket)
    loopback_host.cache_clear()
    yield
    loopback_host.cache_clear()


@_needs_ipv6
@pytest.mark.usefixtures("_without_ipv4")
def test_without_127_0_0_1_daemons_are_started_at_the_other_loopback_address() -> None:
    launch = Launch(run_id="r", folder=Path())
    assert (launch.host, launch.reachable_host) == ("::1", "::1")
    assert Address(launch.host, free_port(launch.host)).url.startswith("http://[::1]:")
    with pytest.raises(DaemonError, match=r"no port of 127\.0\.0\.1 can be used: Cannot") as caught:
        free_port("127.0.0.1")
    assert caught.value.code == "no_port"
