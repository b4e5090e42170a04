"""The port of a daemon that was stopped: what may be behind it, and what may not."""

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
from memconform.daemons.runner import Launch
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
    """The port that the daemon had, once it is free."""
    assert daemon.process is not None
    daemon.process.signal(signal.SIGTERM)
    await daemon.wait_exit()
    port = httpx.URL(daemon.base_url).port
    assert port is not None
    return port


@contextmanager
def _taken(port: int, environment: dict[str, str]) -> Iterator[None]:
    """Another process listens on the port."""
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


async def test_a_port_that_an_older_process_took_meanwhile_is_no_fault_of_the_daemon(
    tmp_path: Path,
) -> None:
    with ExitStack() as taken:
        async with _runner().serve(Launch(run_id=tmp_path.name, folder=tmp_path)) as daemon:
            port = await _stop(daemon)
            taken.enter_context(socket.create_server(("127.0.0.1", port)))
        assert is_open("127.0.0.1", port)


async def test_a_port_that_another_runs_daemon_took_meanwhile_is_no_fault_of_the_daemon(
    tmp_path: Path,
) -> None:
    with ExitStack() as taken:
        async with _runner().serve(Launch(run_id=tmp_path.name, folder=tmp_path)) as daemon:
            port = await _stop(daemon)
            taken.enter_context(_taken(port, {**os.environ, RUN_ID_VARIABLE: "other"}))
        assert is_open("127.0.0.1", port)


async def test_a_port_is_told_that_is_served_by_what_began_after_the_daemon_and_has_no_run(
    tmp_path: Path,
) -> None:
    with ExitStack() as taken:
        with pytest.raises(DaemonError, match=r"port \d+ is still served by python") as raised:
            async with _runner().serve(Launch(run_id=tmp_path.name, folder=tmp_path)) as daemon:
                taken.enter_context(_taken(await _stop(daemon), dict(os.environ)))
        assert raised.value.code == "daemon_left_over"
