"""What happens to the harness itself: the disk, the clock, its output, a second run, no network."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from tests.conftest import CALL_SECONDS, CHECKOUT, OFFLINE, Ended
from tests.program import PROGRAM

Call = Callable[..., Ended]
Scripted = Callable[..., Path]

_SEARCH = ("--scorer", "exact", "--scenario", "search-retrieve-only", "--mode", "bm25")


def _command(sdk: Path, dataset: Path, *more: str) -> list[str]:
    call = [str(PROGRAM), "run", "--sdk", str(sdk), "--dataset", str(dataset)]
    return [*call, *_SEARCH, "--seed-reference-brain", *more]


def _shell(script: str, dataset: Path, env: dict[str, str], *args: str) -> Ended:
    ended = subprocess.run(
        ["/bin/sh", "-c", script, *args],
        cwd=dataset.parent,
        env=env,
        capture_output=True,
        text=True,
        timeout=CALL_SECONDS,
        check=False,
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr, dataset.parent)


def test_a_full_disk_exits_70_and_keeps_the_journal(
    scripted: Scripted, dataset: Path, environment: dict[str, str]
) -> None:
    # The limit applies to a file's size: the journal exceeds it at about the fifth question. Python
    # would truncate its compiled modules there too, and fail to load them from then on.
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    script = 'ulimit -f 8; exec "$0" "$@"'
    ended = _shell(script, dataset, environment, *_command(scripted(), dataset))
    assert ended.code == 70
    assert "journal.jsonl: File too large" in ended.err
    assert "all measurements so far are in" in ended.err
    [journal] = (ended.folder / "results" / "runs").glob("*/journal.jsonl")
    judged = [line for line in journal.read_text().splitlines() if '"judgement"' in line]
    assert 0 < len(judged) < 12


def test_setting_the_clock_back_does_not_change_measured_times(
    installed: Call, scripted: Scripted, dataset: Path, environment: dict[str, str]
) -> None:
    environment["CLOCK_SET_BACK"] = "1"
    call = ("run", "--sdk", scripted(), "--dataset", dataset, *_SEARCH, "--seed-reference-brain")
    ended = installed(*call)
    assert ended.code == 0, ended.err
    started, finished = (
        datetime.fromisoformat(ended.result[key]) for key in ("started_at", "finished_at")
    )
    assert 0 < (finished - started).total_seconds() < CALL_SECONDS
    assert all(question["latency_ms"] > 0 for question in ended.result["questions"])


def test_concurrent_runs_do_not_interfere(
    scripted: Scripted, dataset: Path, environment: dict[str, str]
) -> None:
    command = _command(scripted(), dataset, "--repeat", "20", "--quiet")
    runs = [
        subprocess.Popen(command, cwd=dataset.parent, env=environment, stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    outputs = [run.communicate(timeout=CALL_SECONDS)[0].decode() for run in runs]
    assert [run.returncode for run in runs] == [0, 0]
    assert all("12/12" in output for output in outputs)
    results = sorted((dataset.parent / "results" / "runs").glob("*/result.json"))
    assert [json.loads(path.read_text())["passed"] for path in results] == [12, 12]


def test_names_a_results_folder_that_cannot_be_created(
    memconform: Call, scripted: Scripted, dataset: Path
) -> None:
    call = ("run", "--sdk", scripted(), "--dataset", dataset, *_SEARCH, "--seed-reference-brain")
    ended = memconform(*call, "--output", "/proc/results")
    assert ended.code == 70
    assert "cannot write /proc/results" in ended.err


def test_a_closed_pipe_does_not_exit_like_a_low_score(
    scripted: Scripted, dataset: Path, environment: dict[str, str]
) -> None:
    script = '{ "$0" "$@"; echo $? >code; } | true'
    _shell(script, dataset, environment, *_command(scripted(), dataset, "--json", "-"))
    assert (dataset.parent / "code").read_text() == "70\n"
    [result] = (dataset.parent / "results" / "runs").glob("*/result.json")
    assert json.loads(result.read_text())["exit_code"] == 0


def test_a_closed_pipe_is_said(dataset: Path, environment: dict[str, str]) -> None:
    """It was exit code 70 without a word."""
    script = '{ sleep 1; "$0" --help 2>err; } | true'
    _shell(script, dataset, environment, str(PROGRAM))
    assert "output_unwritable: standard output was closed" in (dataset.parent / "err").read_text()


def test_a_file_in_the_place_of_the_results_is_refused_before_anything_starts(
    scripted: Scripted, dataset: Path, environment: dict[str, str]
) -> None:
    """It was exit code 70, and was said to have measurements."""
    command = _command(scripted(), dataset, "--output", str(dataset))
    ended = _shell('exec "$0" "$@"', dataset, environment, *command)
    assert ended.code == 2
    assert "is a file" in ended.err


def test_a_run_with_a_closed_pipe_still_writes_its_results(
    scripted: Scripted, dataset: Path, environment: dict[str, str]
) -> None:
    script = '{ "$0" "$@" 2>&1; echo $? >code; } | head -n 1'
    _shell(script, dataset, environment, *_command(scripted(), dataset, "--repeat", "30"))
    [result] = (dataset.parent / "results" / "runs").glob("*/result.json")
    assert json.loads(result.read_text())["passed"] == 12
    assert not (result.parent / "state").exists()
    assert (dataset.parent / "code").read_text() == "70\n"


def test_unread_progress_does_not_change_the_exit_code(
    scripted: Scripted, dataset: Path, environment: dict[str, str]
) -> None:
    script = '{ { "$0" "$@" >out; echo $? >code; } 2>&1; } | head -n 1'
    _shell(script, dataset, environment, *_command(scripted(), dataset, "--repeat", "30"))
    assert (dataset.parent / "code").read_text() == "0\n"
    assert "12/12" in (dataset.parent / "out").read_text()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_unwritable_output_is_not_reported_as_a_bug(
    unbuffered: str, scripted: Scripted, dataset: Path, environment: dict[str, str]
) -> None:
    environment["PYTHONUNBUFFERED"] = unbuffered
    command = _command(scripted(), dataset)
    ended = _shell('exec "$0" "$@" >/dev/full', dataset, environment, *command)
    assert (ended.code, "a bug in memconform" in ended.err) == (70, False), ended.err
    assert "output_unwritable: cannot write to standard output: No space left" in ended.err
    assert ended.result["passed"] == 12


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has /dev/full")
def test_unwritable_progress_does_not_change_the_exit_code(
    scripted: Scripted, dataset: Path, environment: dict[str, str]
) -> None:
    command = _command(scripted(), dataset)
    ended = _shell('exec "$0" "$@" 2>/dev/full', dataset, environment, *command)
    assert (ended.code, ended.result["passed"]) == (0, 12)
    assert "12/12" in ended.out
    ended = _shell('exec "$0" "$@" 2>/dev/full', dataset, environment, *command, "--bogus")
    assert ended.code == 2


@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"])
def test_a_closed_output_does_not_change_the_exit_code(
    closed: str, scripted: Scripted, dataset: Path, environment: dict[str, str]
) -> None:
    script = f'exec "$0" "$@" {closed}'
    ended = _shell(script, dataset, environment, *_command(scripted(), dataset))
    assert ended.code == ended.result["exit_code"] == 0, ended.err
    bogus = _command(scripted(), dataset, "--floor", "2")
    assert _shell(script, dataset, environment, *bogus).code == 2


def test_an_unread_usage_error_still_exits_2(dataset: Path, environment: dict[str, str]) -> None:
    script = '{ sleep 1; "$0" run --bogus; echo $? >code; } 2>&1 | true'
    _shell(script, dataset, environment, str(PROGRAM))
    assert (dataset.parent / "code").read_text() == "2\n"


def test_a_device_is_written_in_place_and_not_replaced(
    memconform: Call, scripted: Scripted, dataset: Path
) -> None:
    """A file was once renamed over the null device."""
    pipe = dataset.parent / "pipe"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["/bin/cat", pipe], stdout=subprocess.PIPE)
    call = ("run", "--sdk", scripted(), "--dataset", dataset, *_SEARCH, "--seed-reference-brain")
    assert memconform(*call, "--json", pipe).code == 0
    assert json.loads(reader.communicate(timeout=CALL_SECONDS)[0])["exit_code"] == 0
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_an_unwritable_report_is_rejected_before_the_run(
    memconform: Call, scripted: Scripted, dataset: Path
) -> None:
    call = ("run", "--sdk", scripted(), "--dataset", dataset, *_SEARCH, "--seed-reference-brain")
    for target in ("", "nowhere/report.json", "."):
        ended = memconform(*call, "--json", target)
        assert ended.code == 2
        assert not (ended.folder / "results").exists()


def test_the_demo_connects_to_this_machine_only(
    workspace: Path, environment: dict[str, str]
) -> None:
    ended = subprocess.run(
        ["/usr/bin/env", "make", "-C", CHECKOUT, "demo", f"RESULTS={workspace}"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=CALL_SECONDS,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("py: 20/20 pass_rate=1.0000") == 2


@pytest.mark.parametrize("address", ["192.0.2.1", "2001:db8::1", "packages.example"])
def test_the_network_guard_blocks_other_machines(address: str) -> None:
    # short limit: it is refused at once, or else fails in another way.
    program = f"import socket; socket.create_connection(({address!r}, 80), timeout=1)"
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(OFFLINE)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "tests stay on this machine" in ended.stderr
