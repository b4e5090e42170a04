"""What integration and negative tests share: the installed program, and scripted daemons."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from platformdirs import user_cache_path

from memconform.daemons.manifest import load_manifest

CHECKOUT = Path(__file__).parents[2]
PROGRAM = Path(sys.executable).with_name("memconform")

OFFLINE = Path(__file__).with_name("offline")
"""A sitecustomize that keeps a Python program on this machine."""

SDKS = ("go", "ts", "py")

REQUIRE_ALL = os.environ.get("MEMCONFORM_REQUIRE_ALL") == "1"
"""Whether a missing toolchain fails the tests, as it must in CI, instead of skipping an SDK."""

# A shell's background job ignores Ctrl-C, and so would each program that a test interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)
# The same holds for a hang-up under nohup.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

_ROWS = 12
STRUCK = 7
"""The row whose question a scripted fault strikes."""


@dataclass(frozen=True)
class Ended:
    """A finished call of the program."""

    code: int
    out: str
    err: str
    folder: Path

    @property
    def result(self) -> dict[str, Any]:
        """The result of the only run."""
        [path] = (self.folder / "results" / "runs").glob("*/result.json")
        loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return loaded

    @property
    def question(self) -> dict[str, Any]:
        """The result of the question that the fault struck."""
        struck: dict[str, Any] = self.result["questions"][STRUCK]
        return struck


def proven_attempts(folder: Path) -> int:
    """How many attempts the journal of the only run says were followed by a proof."""
    [journal] = (folder / "results" / "runs").glob("*/journal.jsonl")
    proofs = [json.loads(x) for x in journal.read_text().splitlines() if '"proved"' in x]
    return proofs[-1]["attempts"] if proofs else 0


def processes_of(folder: Path) -> list[psutil.Process]:
    """Daemons whose state lies below `folder`."""
    found = []
    for process in psutil.process_iter():
        try:
            home = process.environ().get("JB_HOME", "")
        except psutil.Error:
            continue
        if home.startswith(str(folder)) and process.status() != psutil.STATUS_ZOMBIE:
            found.append(process)
    return found


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Path]:
    """A folder to run in; no daemon that was started from it may be left."""
    yield tmp_path
    left = processes_of(tmp_path)
    for process in left:
        process.kill()
    assert not left


def _missing(sdk: str) -> list[str]:
    manifest = load_manifest(CHECKOUT / "sdks" / sdk / "sdk.toml")
    return [program for program in manifest.requires if shutil.which(program) is None]


@pytest.fixture(scope="session")
def cache() -> Path:
    """Where builds are kept, with the reference daemons built that can be.

    Building may fetch packages; nothing that runs after it may leave this machine.
    """
    for manifest in sorted((CHECKOUT / "sdks").glob("*/sdk.toml")):
        if manifest.parent.name in runnable():
            subprocess.run([PROGRAM, "doctor", "--sdk", manifest], check=True, capture_output=True)
    return user_cache_path()


def runnable() -> list[str]:
    """The reference SDKs that can run here; all of them where all are demanded."""
    return [sdk for sdk in SDKS if REQUIRE_ALL or not _missing(sdk)]


@pytest.fixture(params=SDKS)
def sdk(request: pytest.FixtureRequest, cache: Path) -> str:
    """Each of the reference SDKs; a skip names what is missing."""
    del cache
    name: str = request.param
    if not REQUIRE_ALL and (missing := _missing(name)):
        pytest.skip(f"{name} cannot run here: {', '.join(missing)} not on PATH")
    return name


@pytest.fixture
def environment(cache: Path) -> dict[str, str]:
    """The shell that the program is called from: offline, with a key that must not leak."""
    ours = {
        "OPENAI_API_KEY": "sk-canary",
        "COLUMNS": "200",
        "XDG_CACHE_HOME": str(cache),
        "PYTHONPATH": str(OFFLINE),
    }
    # Buffered as for everybody: a variable of the tests' own shell must not hide a failing flush.
    return {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"} | ours


@pytest.fixture
def memconform(workspace: Path, environment: dict[str, str]) -> Callable[..., Ended]:
    def call(*args: str | Path, timeout: float = 100) -> Ended:
        ended = subprocess.run(
            [PROGRAM, *args],
            cwd=workspace,
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        return Ended(ended.returncode, ended.stdout, ended.stderr, workspace)

    return call


@pytest.fixture
def dataset(workspace: Path) -> Path:
    """Twelve questions, each answered by its own reference answer."""
    rows = (
        {
            "id": f"q{n}",
            "question": f"What is the secret word of box{n}?",
            "expected_substrings": [f"word{n}x"],
            "reference_answer": f"The secret of box{n} is word{n}x",
        }
        for n in range(_ROWS)
    )
    path = workspace / "boxes.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def scripted(workspace: Path) -> Callable[..., Path]:
    """Writes the manifest of a scripted daemon with one fault; `first` runs before it."""

    def write(
        fault: str = "",
        *,
        ready_s: float = 10,
        port: str = "announced",
        first: str = "",
        on: str = f"box{STRUCK}?",
    ) -> Path:
        argv = ["{python}", "-m", "memconform.fakes.scripted", "--addr", "{addr}"]
        argv += ["--fault", fault, "--on", on] if fault else []
        if first:
            argv = ["sh", "-c", f'{first}; exec "$0" "$@"', *argv]
        path = workspace / "sdk.toml"
        path.write_text(
            'name = "scripted"\nlanguage = "python"\n'
            f"[serve]\nargv = {json.dumps(argv)}\nport = {json.dumps(port)}\n"
            f"[ready]\ntimeout_s = {ready_s}\n"
            '[capabilities]\nprofiles = ["core", "ask"]\nmodes = ["auto", "bm25"]\n'
        )
        return path

    return write
