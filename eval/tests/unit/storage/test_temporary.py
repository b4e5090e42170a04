"""Temporary folders go, whatever ended their use."""

import subprocess
import sys
from pathlib import Path

import pytest

from memconform.storage.temporary import temporary_folder
from tests.conftest import CHECKOUT

_FULL = """
import os, resource, sys
from memconform.storage.temporary import temporary_folder

resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
opened = []
with temporary_folder("memconform-test-") as folder:
    (folder / "below" / "state").mkdir(parents=True)
    try:
        while True:
            opened.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        pass
print(folder.exists())
for file in opened:
    os.close(file)
"""


def test_a_folder_goes_although_no_file_can_be_opened(tmp_path: Path) -> None:
    """With `ulimit -n 8`, a run with a judge left /tmp/memconform-judge-* behind."""
    ended = subprocess.run(
        [sys.executable, "-c", _FULL],
        env={"TMPDIR": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "True\n", "")
    assert list(tmp_path.iterdir()) == []


_READ_ONLY = """
import os
from pathlib import Path
from memconform.storage.temporary import remove_folder

# Relative, because nobody may not search the folders above.
folder = Path("folder")
(folder / "state" / "below").mkdir(parents=True)
(folder / "state" / "file").touch()
(folder / "state" / "below" / "file").touch()
(folder / "state" / "link").symlink_to("../../elsewhere")
Path("elsewhere").mkdir()
Path("elsewhere").chmod(0o555)
for path in (Path("."), Path("elsewhere"), folder, folder / "state", folder / "state" / "below"):
    if os.getuid() == 0:
        os.chown(path, 65534, 65534)
(folder / "state" / "below").chmod(0o000)
(folder / "state").chmod(0o555)
if os.getuid() == 0:
    # Root may remove anything.
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
remove_folder(folder)
"""


def test_a_folder_goes_although_parts_of_it_may_not_be_changed(tmp_path: Path) -> None:
    """A daemon whose state is read-only left its folder behind, silently."""
    ended = subprocess.run(
        [sys.executable, "-c", _READ_ONLY],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.stderr, ended.returncode) == ("", 0)
    assert [path.name for path in tmp_path.iterdir()] == ["elsewhere"]
    assert (tmp_path / "elsewhere").stat().st_mode & 0o777 == 0o555


def test_a_folder_goes_when_its_block_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(IsADirectoryError), temporary_folder("x-") as folder:
        folder.read_bytes()
    assert list(tmp_path.iterdir()) == []


def test_temporary_folders_are_made_in_one_place() -> None:
    """Each maker of its own had a failure of its own that left the folder."""
    package = CHECKOUT / "eval" / "memconform"
    makers = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if "TemporaryDirectory" in path.read_text() or "mkdtemp" in path.read_text()
    }
    assert makers == {
        "storage/temporary.py",
        "reports/overview/overview.py",  # closed by its own block
        "cli/conform/cases.py",  # stays while commands that were shown read it
        "cli/doctor/execution.py",  # stays if it holds logs
        "conformance/mutation/mutant_runner.py",  # inside a folder of builds, renamed when complete
    }
