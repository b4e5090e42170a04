"""Files of a run folder: what killed writers leave, and logs that are too long for memory."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memconform.storage.sink import replacing

_WRITER = """
import sys, time
from pathlib import Path
from memconform.storage.sink import _replacing
with _replacing(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    print("writes", flush=True)
    time.sleep(1000)
"""
_REDACTOR = """
import resource, sys
from pathlib import Path
from memconform import redaction
from memconform.storage.folders import DaemonFolder
redaction.hide("a-secret-in-the-log")
folder = DaemonFolder.__new__(DaemonFolder)
folder.path = Path(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
folder.redact_log()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@contextmanager
def _writer(target: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(target)], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "writes\n"
            yield process
        finally:
            process.kill()


def _temporary(folder: Path) -> list[Path]:
    """The temporary files in a folder, made to look an hour old."""
    files = sorted(folder.glob(".*"))
    for file in files:
        hour_ago = file.stat().st_mtime - 3600
        os.utime(file, (hour_ago, hour_ago))
    return files


def test_the_next_writer_removes_leftovers_of_a_killed_one(tmp_path: Path) -> None:
    with _writer(tmp_path / "py.json") as writer:
        writer.kill()
        writer.wait()
    assert len(_temporary(tmp_path)) == 1
    with replacing(tmp_path / "go.json") as file:
        file.write_text("whole")
    assert [path.name for path in tmp_path.iterdir()] == ["go.json"]


def test_files_of_a_living_writer_stay(tmp_path: Path) -> None:
    with _writer(tmp_path / "py.json"):
        [temporary] = _temporary(tmp_path)
        with replacing(tmp_path / "go.json") as file:
            file.write_text("whole")
        assert temporary.read_bytes() == b"half"


@pytest.mark.parametrize(
    ("name", "age"), [(".py.json.1.0123abcd", 0), (".bashrc", 3600), (".a.1.0123abcde", 3600)]
)
def test_recent_and_foreign_files_stay(tmp_path: Path, name: str, age: int) -> None:
    other = tmp_path / name
    other.touch()
    os.utime(other, (other.stat().st_mtime - age,) * 2)
    with replacing(tmp_path / "go.json") as file:
        file.write_text("whole")
    assert other.exists()


@pytest.mark.parametrize(
    "mebibytes",
    [
        96,
        pytest.param(256, marks=pytest.mark.slow),
    ],
)
def test_a_log_of_one_line_is_redacted_in_little_memory(tmp_path: Path, mebibytes: int) -> None:
    """A line of 1 GiB once took 2.1 GiB of the harness."""
    log = tmp_path / "daemon.log"
    with log.open("wb") as file:
        for _ in range(mebibytes):
            file.write(b"x" * ((1 << 20) - 7) + b"a-secret-in-the-log")
    ended = subprocess.run(
        [sys.executable, "-c", _REDACTOR, tmp_path], capture_output=True, text=True, check=True
    )
    grown = int(ended.stdout) * (1024 if sys.platform == "linux" else 1)
    assert grown < 32 << 20
    text = log.read_bytes()
    assert (text.count(b"(hidden)"), text.count(b"secret")) == (mebibytes, 0)
