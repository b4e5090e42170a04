"""The log of a daemon that writes too much."""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from memconform.daemons import guard
from memconform.daemons.process import DaemonProcess
from tests.conftest import Ended

Call = Callable[..., Ended]
Scripted = Callable[..., Path]

_OMITTED = re.compile(rb"\n\[memconform: (\d+) bytes of output omitted here\]\n")
_LINES = """
import sys
for first in range(0, int(sys.argv[1]), 10_000):
    lines = (f"line {n:09d} " + "x" * 84 for n in range(first, first + 10_000))
    sys.stdout.write("\\n".join(lines) + "\\n")
"""
"""Writes numbered lines of 100 bytes."""


def _writes(lines: int) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", _LINES, str(lines)]


async def _written(tmp_path: Path, argv: list[str]) -> tuple[Path, int]:
    """The log of a command that has ended, and its largest size."""
    log, largest = tmp_path / "daemon.log", 0
    process = await DaemonProcess.start(argv, env=dict(os.environ), cwd=tmp_path, log=log)
    while process.alive:
        largest = max(largest, log.stat().st_size)
        await asyncio.sleep(0.01)  # short limit: between two looks
    assert await process.wait() == "exit status 0"
    return log, largest


@pytest.mark.slow
async def test_a_log_of_gigabytes_is_cut_to_its_head_and_tail(tmp_path: Path) -> None:
    log, largest = await _written(tmp_path, _writes(15_000_000))
    # It is cut while it grows; how far it gets depends on who of the two the machine runs.
    assert largest < 1_490_000_000
    text = log.read_bytes()
    assert len(text) <= guard.CAP_BYTES
    head, *parts = _OMITTED.split(text)
    assert head.startswith(b"line 000000000 ")
    assert guard.HEAD_BYTES - 200_000 < len(head) <= guard.HEAD_BYTES
    assert text.endswith(b"line 014999999 " + b"x" * 84 + b"\n")
    # A writer that is faster than the copying leaves a second gap, so that the tail has two parts.
    assert sum(map(len, parts[1::2])) > guard.TAIL_BYTES // 2
    # Everything written is stored or counted, except what comes while the log is cut: more on a
    # slow machine (1.2 % beside other work), and always less than is cut.
    omitted = sum(int(size) for size in parts[::2])
    stored = len(head) + sum(len(part) for part in parts[1::2])
    assert 1_000_000_000 < omitted + stored <= 1_500_000_000
    # The cuts are at line ends.
    assert all(line.startswith(b"line ") for line in (head.splitlines()[-1], parts[1][:5]))


async def test_a_log_below_the_cap_is_unchanged(tmp_path: Path) -> None:
    log, _ = await _written(tmp_path, _writes(600_000))
    assert log.stat().st_size == 60_000_000
    assert _OMITTED.search(log.read_bytes()) is None


async def test_each_start_has_a_head_and_a_tail_in_one_log(tmp_path: Path) -> None:
    (tmp_path / "daemon.log").write_bytes(b"the start before\n")
    for _ in range(2):
        log, _ = await _written(tmp_path, _writes(800_000))
    text = log.read_bytes()
    assert text.startswith(b"the start before\nline 000000000 ")
    assert (text.count(b"line 000000000 "), text.count(b"line 000799999 ")) == (2, 2)
    # A writer faster than the polling is cut more than once.
    assert len(_OMITTED.findall(text)) >= 2


async def test_a_log_that_was_moved_away_does_not_grow_forever(tmp_path: Path) -> None:
    command = 'mv daemon.log other.log; exec "$0" "$@"'
    process = await DaemonProcess.start(
        ["sh", "-c", command, *_writes(2_000_000)],
        env=dict(os.environ),
        cwd=tmp_path,
        log=tmp_path / "daemon.log",
    )
    await process.wait()
    assert (tmp_path / "other.log").stat().st_size <= guard.CAP_BYTES


async def test_one_endless_line_is_cut_too(tmp_path: Path) -> None:
    log, _ = await _written(tmp_path, ["head", "-c", "300000000", "/dev/zero"])
    assert log.stat().st_size <= guard.CAP_BYTES
    assert _OMITTED.search(log.read_bytes()) is not None


async def test_the_tail_of_a_log_that_grows_is_bounded(tmp_path: Path) -> None:
    process = await DaemonProcess.start(
        ["head", "-c", "1000000000", "/dev/zero"],
        env=dict(os.environ),
        cwd=tmp_path,
        log=tmp_path / "daemon.log",
    )
    longest = 0
    while process.alive:
        longest = max(longest, len(process.tail()))
        await asyncio.sleep(0)
    assert longest <= 1 << 14


def test_an_announcement_after_much_noise_is_found(
    memconform: Call, scripted: Scripted, dataset: Path
) -> None:
    noise = dataset.parent / "noise.py"
    noise.write_text(_LINES)
    sdk = scripted(first=f"{sys.executable} -I -S {noise} 2000000")
    ended = memconform(
        *("run", "--sdk", sdk, "--dataset", dataset, "--scorer", "exact", "--mode", "bm25"),
        *("--scenario", "search-retrieve-only", "--seed-reference-brain"),
    )
    assert (ended.code, ended.result["passed"]) == (0, 12), ended.err
    [log] = (ended.folder / "results" / "runs").glob("*/daemon.log")
    assert log.stat().st_size <= guard.CAP_BYTES
    assert b"listening on" in log.read_bytes()[-10_000:]


def test_the_guard_is_a_program_without_slow_imports() -> None:
    """Each daemon waits for it: `signal` alone takes 3 ms to import."""
    program = f"""
import sys
before = set(sys.modules)
exec(open({guard.__file__!r}).read(), {{"__name__": "guard"}})
print(*set(sys.modules) - before)
"""
    ended = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True
    )
    slow = {"contextlib", "ctypes", "enum", "functools", "pathlib", "signal", "typing"}
    assert not slow.intersection(ended.stdout.split())
