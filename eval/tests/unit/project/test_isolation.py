"""A test session leaves nothing outside its folder, and one that does fails."""

import fcntl
import os
import re
import subprocess
import sys
from pathlib import Path

from tests import isolation
from tests.conftest import CHECKOUT, WAIT_SECONDS

_USERS = (
    *("MEMCONFORM_CACHE", "MEMCONFORM_LEDGER", "MEMCONFORM_PRICES", "XDG_CONFIG_HOME"),
    *("JB_LLM_MODEL", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"),
    *("AZURE_OPENAI_ENDPOINT", "OLLAMA_HOST", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"),
)
_KEPT = ("MEMCONFORM_DATA", "MEMCONFORM_REQUIRE_ALL", "JEFFS_BRAIN", "HTTPS_PROXY", "https_proxy")

_CLEAN = """
import os, tempfile
from pathlib import Path
from platformdirs import user_cache_path
from memconform.user_cache import cache_folder

def test_home(tmp_path: Path) -> None:
    base = tmp_path.parents[1]
    assert base.name.startswith("mct-")
    for folder in (Path.home(), user_cache_path(), cache_folder(), Path(tempfile.gettempdir())):
        assert folder.is_relative_to(base), folder
    assert [name for name in {users!r} if name in os.environ] == []
    assert [name for name in {kept!r} if name not in os.environ] == []
    Path(tempfile.mkdtemp(prefix="memconform-")).chmod(0o500)
    cache_folder().mkdir(parents=True)
    print("base", base)
"""

_LEAKING = """
import subprocess, sys
from pathlib import Path
from tests import isolation

isolation._END_SECONDS = 0

def test_leaks() -> None:
    outside = Path({outside!r})
    (outside / "memconform-left").mkdir()
    (outside / "cache" / "memconform" / "builds").mkdir(parents=True)
    (outside / "cache" / "memconform" / "builds" / "mine-1").touch()
    program = [sys.executable, "-c", "import time; time.sleep(1000)"]
    print("sleeps", subprocess.Popen(program, cwd="/", stdout=2).pid)
"""


def _session(folder: Path, test: str) -> "subprocess.CompletedProcess[str]":
    """Run a test in a session of its own, of a user whose cache and temporary folder these are."""
    (folder / "test_it.py").write_text(test)
    environment = os.environ | dict.fromkeys((*_USERS, *_KEPT), "users")
    environment |= {
        "TMPDIR": str(folder),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "MEMCONFORM_CACHE": str(folder / "cache" / "memconform"),
        "PYTHONPATH": str(CHECKOUT / "eval"),
    }
    flags = ("-p", "tests.isolation", "-p", "no:cacheprovider", "-qs", "test_it.py")
    return subprocess.run(
        [sys.executable, "-m", "pytest", *flags],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )


def test_a_session_that_leaves_something_fails_and_the_next_one_tidies(tmp_path: Path) -> None:
    leaking = _session(tmp_path, _LEAKING.format(outside=str(tmp_path)))
    assert leaking.returncode == 1, leaking.stdout + leaking.stderr
    left = re.findall(r"^left behind by the tests: (.*)$", leaking.stdout, re.MULTILINE)
    [pid] = re.findall(r"sleeps (\d+)", leaking.stdout)
    assert left[0].startswith(f"process {pid} (")
    builds = tmp_path / "cache" / "memconform" / "builds"
    # Other calls of memconform have other folders: these are the session's.
    assert left[1:] == [str(builds), str(builds / "mine-1"), str(tmp_path / "memconform-left")]
    [kept] = tmp_path.glob("mct-*")
    assert isolation.processes_below(kept) == []
    assert f"what the tests wrote is in {kept}" in leaking.stdout

    clean = _session(tmp_path, _CLEAN.format(users=_USERS, kept=_KEPT))
    assert clean.returncode == 0, clean.stdout + clean.stderr
    assert "left behind" not in clean.stdout
    assert "base" in clean.stdout
    assert list(tmp_path.glob("mct-*")) == []


def test_the_folder_of_a_session_that_runs_is_nobody_elses_to_remove(tmp_path: Path) -> None:
    for name in ("mct-1-runs", "mct-1-over", "mct-2-over"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "lock").touch()
    with (tmp_path / "mct-1-runs" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        isolation._remove_abandoned(tmp_path, "mct-1-")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mct-1-runs", "mct-2-over"]


def test_this_session_is_isolated(tmp_path: Path) -> None:
    base = Path(os.environ["HOME"]).parent
    assert base.name.startswith("mct-")
    assert tmp_path.is_relative_to(base)
    # pytest-xdist's workers get what the session has.
    assert [name for name in os.environ if isolation.is_users(name)] == []
    assert all(isolation.is_users(name) for name in _USERS)
    assert not any(isolation.is_users(name) for name in _KEPT)
