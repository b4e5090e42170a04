"""Daemons as processes: ownership, environment, and none outlives the harness."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest

from tests.conftest import WAIT_SECONDS, Ended, processes_of, proven_attempts
from tests.program import PROGRAM
from tests.waiting import wait_until

Call = Callable[..., Ended]
Scripted = Callable[..., Path]


@contextmanager
def _hanging_run(
    sdk: Path, dataset: Path, environment: dict[str, str]
) -> Iterator[subprocess.Popen[str]]:
    """A run whose eighth question never ends."""
    command: list[str | Path] = [
        "run",
        "--sdk",
        sdk,
        "--dataset",
        dataset,
        "--scorer",
        "exact",
        "--quiet",
    ]
    command += ["--scenario", "search-retrieve-only", "--mode", "bm25", "--seed-reference-brain"]
    process = subprocess.Popen(
        [PROGRAM, *command],
        cwd=dataset.parent,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _logs(folder: Path) -> Iterator[Path]:
    return (folder / "results").glob("runs/*/daemon.log")


def _journalled(folder: Path) -> int:
    return sum(
        path.read_text().count('"judgement"')
        for path in (folder / "results").glob("runs/*/journal.jsonl")
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_run_writes_its_result(
    scripted: Scripted, dataset: Path, environment: dict[str, str], number: signal.Signals
) -> None:
    folder = dataset.parent
    with _hanging_run(scripted("hangs"), dataset, environment) as run:
        wait_until(lambda: _journalled(folder) == 7)
        run.send_signal(number)
        out, err = run.communicate(timeout=WAIT_SECONDS)
    ended = Ended(run.returncode, out, err, folder)
    assert ended.code == 130
    assert ended.result["counts"]["correct"] == 7
    assert ended.result["counts"]["not_run"] == 5
    assert ended.result["exit_code"] == 130
    assert "scripted: interrupted; 7 of 12 questions measured" in out
    assert "interrupted" in err
    assert f"--resume {ended.result['run_id']}" in err
    assert not processes_of(folder)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("stage", ["build", "start", "seeding"])
def test_a_run_can_be_interrupted_at_any_stage(
    *,
    scripted: Scripted,
    dataset: Path,
    environment: dict[str, str],
    stage: str,
    number: signal.Signals,
) -> None:
    folder = dataset.parent
    marker = folder / "reached"
    reached = f"touch {marker}; exec sleep 1000"
    fault = {"build": "", "start": "never_listens", "seeding": "hangs_on_ingest"}[stage]
    sdk = scripted(fault, first=f"touch {marker}")
    if stage == "build":
        command = ["sh", "-c", f"{reached}; : {folder}"]
        build = f'[build]\ncommand = {json.dumps(command)}\ninputs = ["*.jsonl"]\n'
        sdk.write_text(sdk.read_text() + build)
    with _hanging_run(sdk, dataset, environment) as run:
        wait_until(marker.exists)
        if stage == "seeding":
            wait_until(
                lambda: any(b"the ingest hangs" in log.read_bytes() for log in _logs(folder))
            )
        started = psutil.Process(run.pid).children(recursive=True)
        assert started
        run.send_signal(number)
        _, err = run.communicate(timeout=WAIT_SECONDS)
        wait_until(lambda: not any(child.is_running() for child in started))
    if number is not signal.SIGKILL:
        assert run.returncode == 130, err
        result = Ended(130, "", err, folder).result
        assert (result["counts"]["not_run"], result["mean_score"]) == (12, None)


@pytest.mark.parametrize("fault", ["never_listens", "hangs", "hangs_stubborn"])
def test_an_interrupt_ends_children_that_left_their_group_too(
    scripted: Scripted, dataset: Path, environment: dict[str, str], fault: str
) -> None:
    folder = dataset.parent
    sdk = scripted(fault, first="setsid sleep 1000 & true")
    with _hanging_run(sdk, dataset, environment) as run:
        wait_until(lambda: any("sleep" in p.name() for p in processes_of(folder)))
        if fault != "never_listens":
            wait_until(lambda: _journalled(folder) == 7)
        run.send_signal(signal.SIGINT)
        time.sleep(0.3)  # short limit: the second may come at any moment
        run.send_signal(signal.SIGINT)
        run.communicate(timeout=WAIT_SECONDS)
    assert run.returncode == 130
    assert not processes_of(folder)


@pytest.mark.capability("interrupts")
def test_closing_the_terminal_ends_the_run_with_a_result(
    scripted: Scripted, dataset: Path, environment: dict[str, str]
) -> None:
    """A hang-up once killed the harness before it wrote a result."""
    folder = dataset.parent
    ours, terminal = os.openpty()
    # The shell has called setsid and opens the terminal, which then controls it.
    script = 'exec <"$0" >"$0" 2>&1 && exec "$@"'
    call: list[str | Path] = [PROGRAM, "run", "--sdk", scripted("hangs"), "--dataset", dataset]
    call += ["--mode", "bm25"]
    call += ["--scorer", "exact", "--scenario", "search-retrieve-only", "--seed-reference-brain"]
    run = subprocess.Popen(
        ["/bin/sh", "-c", script, os.ttyname(terminal), *call],
        cwd=folder,
        env=environment,
        start_new_session=True,
    )
    os.close(terminal)
    try:
        wait_until(lambda: _journalled(folder) == 7)
        os.close(ours)
        assert run.wait(WAIT_SECONDS) == 130
    finally:
        run.kill()
        run.wait()
    result = Ended(130, "", "", folder).result
    assert (result["counts"]["correct"], result["exit_code"]) == (7, 130)
    assert not processes_of(folder)


def _ignores(pid: int, number: signal.Signals) -> bool:
    """What Linux says: that a process still runs would not show that the signal has arrived."""
    [mask] = re.findall(r"SigIgn:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())
    return bool(int(mask, 16) >> (number - 1) & 1)


@pytest.mark.skipif(sys.platform != "linux", reason="the mask of signals is read from /proc")
def test_a_hang_up_is_ignored_under_nohup(
    scripted: Scripted, dataset: Path, environment: dict[str, str]
) -> None:
    previous = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with _hanging_run(scripted("hangs"), dataset, environment) as run:
            wait_until(lambda: _journalled(dataset.parent) == 7)
            assert _ignores(run.pid, signal.SIGHUP)
            run.send_signal(signal.SIGHUP)
            run.send_signal(signal.SIGINT)
            run.communicate(timeout=WAIT_SECONDS)
            assert run.returncode == 130
    finally:
        signal.signal(signal.SIGHUP, previous)


def test_late_interrupts_always_give_the_same_exit_code(
    scripted: Scripted, dataset: Path, environment: dict[str, str]
) -> None:
    """An interrupt between the end of the event loop and process exit once killed the harness."""
    with _hanging_run(scripted("hangs"), dataset, environment) as run:
        wait_until(lambda: _journalled(dataset.parent) == 7)
        while run.poll() is None:
            run.send_signal(signal.SIGINT)
            time.sleep(0.002)  # short limit: it may come at any moment
        assert run.returncode == 130


def test_a_second_interrupt_does_not_cut_off_the_result(
    scripted: Scripted, dataset: Path, environment: dict[str, str]
) -> None:
    """Two Ctrl-C once exited with 1, like a low score."""
    folder = dataset.parent
    with _hanging_run(scripted("hangs_stubborn"), dataset, environment) as run:
        wait_until(lambda: _journalled(folder) == 7)
        run.send_signal(signal.SIGINT)
        time.sleep(0.5)  # short limit: the second may come at any moment
        run.send_signal(signal.SIGINT)
        run.send_signal(signal.SIGTERM)
        out, err = run.communicate(timeout=WAIT_SECONDS)
    assert run.returncode == 130, err
    assert Ended(run.returncode, out, err, folder).result["counts"]["correct"] == 7


def test_no_daemon_outlives_its_guard(
    scripted: Scripted, dataset: Path, environment: dict[str, str]
) -> None:
    folder = dataset.parent
    with _hanging_run(scripted("hangs"), dataset, environment) as run:
        wait_until(lambda: _journalled(folder) == 7)
        [daemon] = [p for p in processes_of(folder) if "guard.py" not in " ".join(p.cmdline())]
        guard = daemon.parent()
        assert guard is not None
        guard.kill()
        _, err = run.communicate(timeout=WAIT_SECONDS)
    assert run.returncode == 3
    assert "ended with its guard, which was killed by SIGKILL" in err
    assert not processes_of(folder)


def test_a_child_that_left_its_group_is_found_and_named(
    memconform: Call, scripted: Scripted, dataset: Path
) -> None:
    sdk = scripted(first="setsid sleep 1000 & true")
    ended = memconform(
        *("run", "--sdk", sdk, "--dataset", dataset, "--scorer", "exact", "--mode", "bm25"),
        *("--scenario", "search-retrieve-only", "--seed-reference-brain"),
    )
    assert ended.code == 3
    assert ended.result["incident"]["code"] == "daemon_left_over"
    assert "left sleep (pid " in ended.err
    assert ended.result["passed"] == 12


def test_a_running_daemon_that_disappears_ends_the_run(
    dataset: Path, environment: dict[str, str], memconform: Call
) -> None:
    command = [sys.executable, "-m", "tests.fakes.scripted", "--addr", "127.0.0.1:0"]
    command += ["--fault", "dies", "--on", "box7?"]
    daemon = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        url = daemon.stdout.readline().split()[-1] if daemon.stdout else ""
        ended = memconform(
            *("run", "--sdk", f"url:{url}", "--dataset", dataset, "--scorer", "exact"),
            *("--scenario", "search-retrieve-only", "--mode", "bm25", "--brain", "mc-gone"),
            "--seed-reference-brain",
        )
    finally:
        daemon.kill()
        daemon.communicate()
    assert ended.code == 3
    assert ended.result["incident"]["code"] == "daemon_gone"
    # Without the daemon, nothing can prove that its answers came from a complete index.
    counts = ended.result["counts"]
    assert counts["correct"] == proven_attempts(dataset.parent) <= 7
    assert counts["incorrect"] == 0


def test_no_daemon_outlives_a_killed_harness(
    scripted: Scripted, dataset: Path, environment: dict[str, str]
) -> None:
    folder = dataset.parent
    with _hanging_run(scripted("hangs"), dataset, environment) as run:
        wait_until(lambda: _journalled(folder) == 7)
        assert processes_of(folder)
        run.kill()
        run.wait()
        wait_until(lambda: not processes_of(folder))
    assert _journalled(folder) == 7


def test_a_daemon_that_ignores_sigterm_is_killed_with_its_children(
    memconform: Call, scripted: Scripted, dataset: Path
) -> None:
    sdk = scripted("ignores_sigterm", first="sleep 1000 & true")
    started = time.monotonic()
    ended = memconform(
        *("run", "--sdk", sdk, "--dataset", dataset, "--scorer", "exact", "--mode", "bm25"),
        *("--scenario", "search-retrieve-only", "--seed-reference-brain"),
    )
    assert ended.code == 0, ended.err
    assert time.monotonic() - started > 5  # short limit: a stall adds to it
    assert not processes_of(ended.folder)


def test_a_daemon_sees_only_what_its_manifest_names(
    memconform: Call, scripted: Scripted, dataset: Path, environment: dict[str, str]
) -> None:
    environment |= {"JB_LLM_MODEL": "tiny", "SECRET_TOKEN": "canary"}
    seen = dataset.parent / "seen.txt"
    sdk = scripted(first=f"env > {seen}")
    with sdk.open("a") as file:
        file.write('[env]\nset = { A_SETTING = "on", JB_LLM_MODEL = "default" }\n')
        file.write('pass = ["JB_LLM_MODEL"]\n')
    ended = memconform(
        *("run", "--sdk", sdk, "--dataset", dataset, "--scorer", "exact", "--mode", "bm25"),
        *("--scenario", "search-retrieve-only", "--seed-reference-brain"),
    )
    assert ended.code == 0, ended.err
    daemon_saw = dict(line.partition("=")[::2] for line in seen.read_text().splitlines())
    assert daemon_saw["A_SETTING"] == "on"
    assert daemon_saw["JB_LLM_MODEL"] == "tiny"
    assert daemon_saw["MEMCONFORM_RUN_ID"] == ended.result["run_id"]
    assert not {"SECRET_TOKEN", "OPENAI_API_KEY"} & daemon_saw.keys()


def test_another_process_on_the_port_is_not_mistaken_for_the_daemon(
    memconform: Call, scripted: Scripted, dataset: Path
) -> None:
    stranger = subprocess.Popen(
        [sys.executable, "-m", "memconform.bench.null_server", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert stranger.stdout is not None
        port = stranger.stdout.readline().rpartition(":")[2].strip()
        # Our daemon never listens, and another healthy process answers on its port.
        sdk = scripted("never_listens", first=f"echo listening on http://127.0.0.1:{port}")
        ended = memconform(
            *("run", "--sdk", sdk, "--dataset", dataset, "--scorer", "exact", "--mode", "bm25"),
            *("--scenario", "search-retrieve-only", "--seed-reference-brain"),
        )
    finally:
        stranger.kill()
        stranger.communicate()
    assert ended.code == 3
    assert ended.result["incident"]["code"] == "daemon_not_ours"
    assert f"(pid {stranger.pid})" in ended.err


def test_a_running_daemon_is_used_and_left_running(
    memconform: Call, dataset: Path, environment: dict[str, str]
) -> None:
    command = [sys.executable, "-m", "tests.fakes.scripted", "--addr", "127.0.0.1:0"]
    daemon = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert daemon.stdout is not None
        url = daemon.stdout.readline().split()[-1]
        common = (
            *("run", "--sdk", f"url:{url}", "--dataset", dataset, "--scorer", "exact"),
            *("--scenario", "search-retrieve-only", "--mode", "bm25"),
        )
        ended = memconform(*common, "--brain", "mc-test", "--seed-reference-brain")
        assert ended.code == 0, ended.err
        assert ended.result["daemon"]["ready_ms"] is None
        again = memconform(*common, "--brain", "mc-test")
        assert again.code == 0, again.err
        assert httpx.get(f"{url}/healthz").status_code == 200
        httpx.post(f"{url}/v1/brains", json={"brainId": "empty"})
        # A faulty corpus is reported before the brain is emptied.
        refused = memconform(*common, "--brain", "mc-test", "--corpus", "nowhere")
        assert refused.code == 2
        assert httpx.get(f"{url}/v1/brains/mc-test").json()["documents"] == 12
        empty = memconform(*common, "--brain", "empty")
        assert empty.code == 2
        assert "is empty, so every answer would be wrong" in empty.err
    finally:
        os.kill(daemon.pid, signal.SIGTERM)
        daemon.wait(timeout=WAIT_SECONDS)
        daemon.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_doctor_exits_130_without_a_verdict(
    scripted: Scripted, environment: dict[str, str], workspace: Path, number: signal.Signals
) -> None:
    marker = workspace / "reached"
    manifest = scripted("never_listens", first=f"touch {marker}")
    command = [str(PROGRAM), "doctor", "--sdk", str(manifest)]
    with subprocess.Popen(
        command, cwd=workspace, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as doctor:
        wait_until(marker.exists)
        doctor.send_signal(number)
        doctor.communicate(timeout=WAIT_SECONDS)
    assert doctor.returncode == 130
    assert not processes_of(workspace)
