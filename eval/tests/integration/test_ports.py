"""The port of a stopped daemon: which processes may serve it."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from memconform.daemons.manifest import load_manifest
from memconform.daemons.manifest_runner import ManagedDaemon, ManifestRunner
from memconform.daemons.ports import is_open
from memconform.daemons.resources import RUN_ID_VARIABLE
from memconform.daemons.sdk_runner import Launch
from memconform.errors import DaemonError
from tests.conftest import CHECKOUT

_SERVER = """
import socket, sys
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("listening", flush=True)
sys.stdin.read()
"""


def _runner() -> ManifestRunner:
    folder = CHECKOUT / "sdks" / "py"
    return ManifestRunner(load_manifest(folder / "sdk.toml"), folder)


async def _stop(daemon: ManagedDaemon) -> int:
    """Stop the daemon directly; returns the port that it had."""
    assert daemon.process is not None
    daemon.process.signal(signal.SIGTERM)
    await daemon.wait_exit()
    port = httpx.URL(daemon.base_url).port
    assert port is not None
    return port


@contextmanager
def _taken(port: int, environment: dict[str, str]) -> Iterator[None]:
    """Have another process listen on the port."""
    with subprocess.Popen(
        [sys.executable, "-c", _SERVER, str(port)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"listening\n"
        yield
        process.kill()


async def test_a_port_taken_by_an_older_process_is_not_a_daemon_fault(
    tmp_path: Path,
) -> None:
    with ExitStack() as taken:
        async with _runner().serve(Launch(run_id=tmp_path.name, folder=tmp_path)) as daemon:
            port = await _stop(daemon)
            taken.enter_context(socket.create_server(("127.0.0.1", port)))
        assert is_open("127.0.0.1", port)


async def test_a_port_taken_by_the_daemon_of_another_run_is_not_a_daemon_fault(
    tmp_path: Path,
) -> None:
    with ExitStack() as taken:
        async with _runner().serve(Launch(run_id=tmp_path.name, folder=tmp_path)) as daemon:
            port = await _stop(daemon)
            taken.enter_context(_taken(port, {**os.environ, RUN_ID_VARIABLE: "other"}))
        assert is_open("127.0.0.1", port)


async def test_a_port_served_by_a_newer_process_without_a_run_id_is_reported(
    tmp_path: Path,
) -> None:
    with ExitStack() as taken:
        with pytest.raises(DaemonError, match=r"port \d+ is still served by python") as raised:
            async with _runner().serve(Launch(run_id=tmp_path.name, folder=tmp_path)) as daemon:
                taken.enter_context(_taken(await _stop(daemon), dict(os.environ)))
        assert raised.value.code == "daemon_left_over"
