"""`--sdk package.module:Class`: a runner of the user's own."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ended

_PLUGIN = """
import sys
from contextlib import asynccontextmanager

from memconform.daemons.process import DaemonProcess
from memconform.daemons.sdk_runner import SdkRunner


class Running:
    ready_ms = None

    def __init__(self, process, port):
        self.base_url = f"http://127.0.0.1:{port}"
        self.wait_exit = process.wait
        self.log_tail = process.tail
        self.resources = lambda: None


class Mine(SdkRunner):
    name = "mine"

    @asynccontextmanager
    async def serve(self, launch):
        argv = [sys.executable, "-m", "tests.fakes.scripted", "--addr", "127.0.0.1:0"]
        log = launch.folder / "daemon.log"
        process = await DaemonProcess.start(argv, env={}, cwd=launch.folder, log=log)
        try:
            while b"listening on" not in process.output(0):
                pass
            yield Running(process, process.output(0).decode().strip().rpartition(":")[2])
        finally:
            await process.stop()
"""


@pytest.mark.capability("plug-ins")
def test_a_runner_of_the_working_folder_serves_its_daemon(
    memconform: Callable[..., Ended], dataset: Path
) -> None:
    (dataset.parent / "mysdk.py").write_text(_PLUGIN)
    ended = memconform(
        *("run", "--sdk", "mysdk:Mine", "--dataset", dataset, "--scorer", "exact"),
        *("--scenario", "ask-basic", "--mode", "bm25", "--seed-reference-brain"),
    )
    assert ended.code == 0, ended.err
    assert ended.out.startswith("mine: 12/12 ")
