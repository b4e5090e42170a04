"""Most tests call the program by a fork: it must be to them what a start of it is to a shell."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ended, shell
from tests.program import ForkServer

Call = Callable[..., Ended]


@pytest.fixture
def seen(workspace: Path) -> Callable[[Call], dict[str, Any]]:
    """What the program's process is, as a plug-in inside it sees it."""
    probe = Path(__file__).with_name("probe.py").read_text(encoding="utf-8")
    (workspace / "probe.py").write_text(probe, encoding="utf-8")

    def look(call: Call) -> dict[str, Any]:
        ended = call("doctor", "--sdk", "probe:Nobody")
        assert (ended.code, "no attribute 'Nobody'" in ended.err) == (2, True), ended.err
        loaded: dict[str, Any] = json.loads((workspace / "seen.json").read_text(encoding="utf-8"))
        return loaded

    return look


def test_a_forked_program_behaves_like_a_started_one(
    memconform: Call,
    installed: Call,
    environment: dict[str, str],
    seen: Callable[[Call], dict[str, Any]],
) -> None:
    environment |= {"TZ": "Asia/Tokyo", "A_VARIABLE": "of this call"}
    forked = seen(memconform)
    assert forked == seen(installed)
    del environment["A_VARIABLE"]
    assert "A_VARIABLE" not in seen(memconform)["environment"]


def test_interpreter_settings_are_not_ignored(
    memconform: Call, environment: dict[str, str]
) -> None:
    environment["PYTHONUNBUFFERED"] = "1"
    with pytest.raises(AssertionError, match="use `installed`"):
        memconform("--help")


def test_a_call_that_hangs_is_killed_and_the_next_is_served(
    fork_server: ForkServer, workspace: Path
) -> None:
    (workspace / "hangs.py").write_text("import time; time.sleep(1000)")

    def call(module: str, seconds: float) -> subprocess.CompletedProcess[str]:
        args = ("doctor", "--sdk", f"{module}:X")
        return fork_server.run(args, folder=workspace, environment=shell(), timeout=seconds)

    with pytest.raises(subprocess.TimeoutExpired):
        call("hangs", 3)
    assert call("nowhere", 60).returncode == 2
