"""Hostile daemons attack their guard, and still no process of theirs remains."""

import asyncio
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from memconform.daemons import guard_process
from memconform.daemons import process as daemon_process
from memconform.daemons.process import DaemonProcess
from memconform.daemons.resources import Sampler
from memconform.errors import DaemonError
from tests.conftest import WAIT_SECONDS, Ended, processes_of
from tests.program import PROGRAM
from tests.waiting import wait_until

Call = Callable[..., Ended]
Scripted = Callable[..., Path]

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has child subreapers")

_ESCAPE = """
import os, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execve(sys.executable, [sys.executable, "-I", "-S", *sys.argv[1:]], {})
    os._exit(0)
os.wait()
"""
"""Runs a program after setsid and a double fork, with an empty environment."""

_SLEEP = "import time; time.sleep(1000)"
_FORK_FOR_EVER = """
import os, sys, time
os.open(__file__ + ".alive", os.O_RDWR)
while True:
    if os.fork():
        os._exit(0)
    if sys.argv[1] == "setsid":
        os.setsid()
    os.stat(__file__)
    time.sleep(0.0005)
"""
"""A process that lives for a millisecond and leaves a copy of itself."""
_STOP_FOR_EVER = """
import os, signal, sys, time
while True:
    os.kill(int(sys.argv[2]), signal.SIGSTOP)
    time.sleep(0.001)
"""


@pytest.fixture
def escape(workspace: Path) -> Iterator[Callable[..., str]]:
    """Builds shell commands that let a program escape; survivors are killed at the end."""
    (workspace / "escape.py").write_text(_ESCAPE)

    def command(program: str, *arguments: str) -> str:
        path = workspace / "escaped.py"
        path.write_text(program)
        # `_escaped` finds the program by this path in its command line.
        return " ".join(
            [sys.executable, "-I", "-S", f"{workspace}/escape.py", str(path), *arguments]
        )

    yield command
    # Without its program it ends by itself, however often it forks.
    (workspace / "escaped.py").unlink(missing_ok=True)
    while escaped := _escaped(workspace):
        for process in escaped:
            process.kill()


def _escaped(workspace: Path) -> list[psutil.Process]:
    processes = []
    for process in psutil.process_iter():
        try:
            arguments = process.cmdline()
        except psutil.Error:
            continue
        if str(workspace / "escaped.py") in arguments and "escape.py" not in arguments[-2]:
            processes.append(process)
    return [p for p in processes if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


def _run(sdk: Path, dataset: Path) -> tuple[str | Path, ...]:
    return (
        *("run", "--sdk", sdk, "--dataset", dataset, "--scorer", "exact", "--mode", "bm25"),
        *("--scenario", "search-retrieve-only", "--seed-reference-brain"),
    )


@contextmanager
def _started(
    command: Sequence[str | Path], folder: Path, environment: dict[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [PROGRAM, *command],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@linux
def test_a_child_that_escaped_by_double_fork_is_killed_and_named(
    memconform: Call, scripted: Scripted, dataset: Path, escape: Callable[..., str]
) -> None:
    ended = memconform(*_run(scripted(first=escape(_SLEEP)), dataset))
    left = _escaped(dataset.parent)
    assert (ended.code, left) == (3, []), ended.err
    assert ended.result["incident"]["code"] == "daemon_left_over"
    assert "was stopped but left python" in ended.err
    assert ended.result["passed"] == 12


@linux
@pytest.mark.parametrize("group", ["one", "setsid"])
def test_a_child_that_forks_while_it_is_killed_is_ended(
    *,
    memconform: Call,
    scripted: Scripted,
    dataset: Path,
    escape: Callable[..., str],
    group: str,
) -> None:
    # It is too short-lived for a process list, but its copies hold the pipe open.
    alive = dataset.parent / "escaped.py.alive"
    os.mkfifo(alive)
    ended = memconform(*_run(scripted(first=escape(_FORK_FOR_EVER, group)), dataset))
    pipe = os.open(alive, os.O_RDONLY | os.O_NONBLOCK)
    assert os.read(pipe, 1) == b"", "somebody still has the other end"
    os.close(pipe)
    assert ended.code == 3, ended.err
    assert ended.result["incident"]["code"] == "daemon_left_over"


@linux
@pytest.mark.parametrize("guard", ["works", "is_stopped"])
def test_nothing_that_escaped_outlives_a_killed_harness(
    *,
    scripted: Scripted,
    dataset: Path,
    environment: dict[str, str],
    escape: Callable[..., str],
    guard: str,
) -> None:
    folder = dataset.parent
    first = escape(_SLEEP) + ("; kill -STOP $PPID" if guard == "is_stopped" else "")
    with _started(_run(scripted("hangs", first=first), dataset), folder, environment) as run:
        wait_until(lambda: _escaped(folder))
        time.sleep(0.5)  # short limit: it may be killed at any moment
        run.kill()
        wait_until(lambda: not _escaped(folder) and not processes_of(folder))


_STALL = """
import subprocess, sys, time, types
sys.path.insert(0, sys.argv[1])
import guard
leader = subprocess.Popen(["true"], process_group=0)
child = subprocess.Popen(["sleep", "0.3"], start_new_session=True)
begun = time.monotonic()

def clock():
    now = time.monotonic()
    return now if now - begun < 0.05 else now + 62

guard.time = types.SimpleNamespace(monotonic=clock, sleep=time.sleep)
print(guard._end_all(leader.pid, 60)[0])
"""
"""Ends a daemon and a child of it that ends by itself; meanwhile a stall of 62 s passes."""


@linux
def test_a_stall_takes_no_time_of_a_child_that_is_about_to_end() -> None:
    folder = guard_process._GUARD.parent
    ended = subprocess.run(
        [sys.executable, "-S", "-c", _STALL, folder], capture_output=True, text=True, check=True
    )
    assert ended.stdout == "[]\n"


@linux
def test_a_server_left_running_by_a_build_is_stopped_and_is_not_a_failure(
    memconform: Call, scripted: Scripted, dataset: Path, escape: Callable[..., str]
) -> None:
    sdk = scripted()
    marker = dataset.parent / "escaped-in-build"
    program = f"open({str(marker)!r}, 'w').close(); {_SLEEP}"
    script = f"{escape(program)}; until [ -e {marker} ]; do sleep 0.1; done"
    build = f'[build]\ncommand = {json.dumps(["sh", "-c", script])}\ninputs = ["*.jsonl"]\n'
    sdk.write_text(sdk.read_text() + build)
    ended = memconform(*_run(sdk, dataset))
    assert marker.exists()
    assert (ended.code, _escaped(dataset.parent)) == (0, []), ended.err


def test_a_child_that_ends_with_its_daemon_is_not_a_failure(
    memconform: Call, scripted: Scripted, dataset: Path
) -> None:
    """It may end a moment later, even in its own process group."""
    child = "setsid sh -c 'read line; sleep 0.1' <pipe"
    sdk = scripted(first=f"mkfifo pipe; {child} & exec 9>pipe")
    ended = memconform(*_run(sdk, dataset))
    assert ended.code == 0, ended.err


def test_a_daemon_that_suspends_its_guard_is_still_stopped(
    memconform: Call, scripted: Scripted, dataset: Path
) -> None:
    ended = memconform(*_run(scripted(first="kill -STOP $PPID"), dataset))
    assert ended.code == 0, ended.err
    assert not processes_of(ended.folder)


async def test_a_guard_that_is_suspended_before_it_reports_its_daemon_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A daemon that stopped its guard at once, on a busy machine, was not started in 30 s."""
    guard = tmp_path / "guard.py"
    stop = "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\n"
    guard.write_text(stop + guard_process._GUARD.read_text())
    monkeypatch.setattr(guard_process, "_GUARD", guard)
    monkeypatch.setattr(daemon_process, "_GUARD_START_SECONDS", WAIT_SECONDS)
    process = await DaemonProcess.start(
        ["sleep", "1000"], env=dict(os.environ), cwd=tmp_path, log=tmp_path / "daemon.log"
    )
    await process.stop()
    assert not psutil.pid_exists(process.pid)


@linux
async def test_the_memory_of_a_process_that_detaches_is_counted(tmp_path: Path) -> None:
    """The Postgres of a memory system was not in its figures."""
    size = 96 << 20
    code = f"import time; kept = b'x' * {size}; open('ready', 'w').close(); time.sleep(1000)"
    # The shell in between ends, so the process is no descendant of the command any more.
    detached = f"(setsid {shlex.quote(sys.executable)} -c {shlex.quote(code)} &)"
    process = await DaemonProcess.start(
        ["sh", "-c", f"{detached}; exec sleep 1000"],
        env=dict(os.environ),
        cwd=tmp_path,
        log=tmp_path / "daemon.log",
    )
    try:
        await asyncio.to_thread(wait_until, (tmp_path / "ready").exists)
        sampler = Sampler(process.guard_pid)
        sampler.sample()
    finally:
        await process.stop()
    assert sampler.result().rss_peak_bytes > size


@linux
def test_a_guard_that_is_suspended_repeatedly_is_bypassed(
    memconform: Call, scripted: Scripted, dataset: Path, escape: Callable[..., str]
) -> None:
    first = escape(_STOP_FOR_EVER, "x", "$PPID")
    ended = memconform(*_run(scripted(first=first), dataset))
    assert (ended.code, _escaped(dataset.parent)) == (3, []), ended.err
    assert ended.result["incident"]["code"] == "daemon_left_over"
    assert not processes_of(ended.folder)


@pytest.mark.capability("guard")
@linux
def test_a_daemon_that_kills_its_guard_leaves_nothing(
    memconform: Call, scripted: Scripted, dataset: Path, escape: Callable[..., str]
) -> None:
    sdk = scripted(first=f"{escape(_SLEEP)}; sleep 0.2; kill -KILL $PPID; true")
    ended = memconform(*_run(sdk, dataset))
    assert (ended.code, _escaped(dataset.parent)) == (3, []), ended.err
    assert "ended with its guard, which was killed by SIGKILL" in ended.err
    assert not processes_of(ended.folder)


async def test_a_guard_that_never_answers_fails_the_start_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard = tmp_path / "guard.py"
    guard.write_text(_SLEEP)
    monkeypatch.setattr(guard_process, "_GUARD", guard)
    # short limit: this guard never answers, however long it has.
    monkeypatch.setattr(daemon_process, "_GUARD_START_SECONDS", 1.0)
    # short limit: the same.
    monkeypatch.setattr(guard_process, "SWEEP_SECONDS", 0.1)
    with pytest.raises(DaemonError, match="no answer within 1 s") as raised:
        await DaemonProcess.start(
            ["true"], env=dict(os.environ), cwd=tmp_path, log=tmp_path / "daemon.log"
        )
    assert raised.value.code == "spawn_failed"
    assert not [p for p in psutil.Process().children() if str(guard) in p.cmdline()]


async def test_a_stop_is_bounded_when_the_guard_does_not_answer(tmp_path: Path) -> None:
    process = await DaemonProcess.start(
        ["sleep", "1000"], env=dict(os.environ), cwd=tmp_path, log=tmp_path / "daemon.log"
    )
    [guard] = [p for p in psutil.Process().children() if "guard.py" in " ".join(p.cmdline())]
    guard.send_signal(signal.SIGSTOP)
    await process.stop()
    assert not psutil.pid_exists(process.pid)
    assert not process.alive
