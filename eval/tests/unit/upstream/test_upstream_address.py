"""`memconform upstream` listens where this machine can be reached, and says what to try if not."""

import errno
import socket

import pytest
from click.testing import CliRunner, Result

from memconform.cli.upstream import command as upstream
from memconform.daemons.ports import accepts
from memconform.errors import UsageError


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that were served."""
    addresses: list[str] = []

    def serve(listener: socket.socket, _: object, __: object) -> None:
        addresses.append(listener.getsockname()[0])
        listener.close()

    monkeypatch.setattr(upstream, "serve", serve)
    return addresses


def _call(addr: str) -> Result:
    return CliRunner().invoke(upstream.command, ["--addr", addr], standalone_mode=False)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_localhost_is_the_loopback_address_of_this_machine(
    host: str, served: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine with ::1 alone, it failed with the hint `try port 0`."""
    if accepts(host) is not None:
        pytest.skip(f"this machine has no {host}")
    monkeypatch.setattr(upstream, "loopback_host", lambda: host)
    assert _call("localhost:0").exception is None
    assert served == [host]


def test_its_default_is_the_loopback_address() -> None:
    (addr,) = (each for each in upstream.command.params if each.name == "addr")
    assert addr.default == "localhost:18860"


@pytest.mark.parametrize("host", ["192.0.2.1", "nowhere.invalid"])
def test_an_address_of_no_interface_has_a_hint_that_helps(host: str) -> None:
    error = _call(f"{host}:0").exception
    assert isinstance(error, UsageError)
    assert (error.code, error.hint) == (
        "bad_addr",
        "write localhost:PORT, or an address of this machine",
    )


def test_the_hint_for_a_port_that_is_not_allowed_is_another_port(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def listen(*_: object) -> None:
        raise OSError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(upstream, "listen", listen)
    error = _call("127.0.0.1:80").exception
    assert isinstance(error, UsageError)
    assert error.hint == "try port 0, or one above 1023"


def test_the_hint_for_a_taken_port_is_another_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        error = _call(f"127.0.0.1:{taken.getsockname()[1]}").exception
    assert isinstance(error, UsageError)
    assert error.hint == "try port 0"
