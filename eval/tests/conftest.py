"""What integration and negative tests share: the installed program, and scripted daemons."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from platformdirs import user_cache_path

from memconform import redaction
from memconform.daemons.build import Buildable, build_key, ensure_built
from memconform.daemons.client_program import find_client
from memconform.daemons.manifest import load_manifest
from memconform.daemons.tasks import run_together
from memconform.printing.logs import reset_logs
from tests.program import PROGRAM, ForkServer

CHECKOUT = Path(__file__).parents[2]

OFFLINE = Path(__file__).with_name("offline")
"""A sitecustomize that keeps a Python program on this machine."""

SDKS = ("go", "ts", "py")

REQUIRE_ALL = os.environ.get("MEMCONFORM_REQUIRE_ALL") == "1"
"""Whether a missing toolchain fails the tests, as it must in CI, instead of skipping an SDK."""

# A shell's background job ignores Ctrl-C, and so would each program that a test interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)
# The same holds for a hang-up under nohup.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

CALL_SECONDS = 300
"""For a call that takes two to thirty; pytest ends the test at 400, and with less to tell."""

WAIT_SECONDS = 120
"""For what takes a moment on an idle machine, and for ever where it is broken."""

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
    processes = []
    for process in psutil.process_iter():
        try:
            home = process.environ().get("JB_HOME", "")
        except psutil.Error:
            continue
        if home.startswith(str(folder)) and process.status() != psutil.STATUS_ZOMBIE:
            processes.append(process)
    return processes


@pytest.fixture(autouse=True)
def _process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A command that a test calls in process leaves neither its log nor its secrets to others.

    Workers of pytest-xdist are told the width of a terminal that they do not have.
    """
    monkeypatch.delenv("COLUMNS", raising=False)
    yield
    reset_logs()
    redaction.forget()


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
def cache(pytestconfig: pytest.Config) -> Path:
    """The session's cache folder, with the reference daemons built that can be.

    Building may fetch packages; nothing that runs after it may leave this machine. The builds are
    kept in `.pytest_cache` for the next session, by their content. A session, or a worker of it,
    waits while another builds the same.
    """
    assert pytestconfig.cache is not None, "the tests need pytest's cacheprovider"
    builds = user_cache_path("memconform") / "builds"
    builds.mkdir(parents=True, exist_ok=True)
    for built in asyncio.run(_build_all(pytestconfig.cache.mkdir("builds"))):
        with suppress(FileExistsError):  # by another worker
            (builds / built.name).symlink_to(built)
    return user_cache_path()


async def _build_all(store: Path) -> list[Path]:
    built = await run_together(*(_build(CHECKOUT / "sdks" / sdk, store) for sdk in runnable()))
    return [path for paths in built for path in paths]


async def _build(folder: Path, store: Path) -> list[Path]:
    """Build an SDK's daemon, and the driver of its client."""
    manifest = load_manifest(folder / "sdk.toml")
    client = find_client(str(folder), CHECKOUT)
    every: list[Buildable] = [manifest] if client is None else [manifest, client.buildable]
    built = []
    for each in every:
        if each.build is not None:
            key = build_key(each, folder)
            built.append(await ensure_built(each, folder, key, lambda _: None, cache=store))
    return built


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


def shell(*python_path: Path, **variables: str) -> dict[str, str]:
    """The environment of an offline shell, with these folders on PYTHONPATH and these variables."""
    ours = {"COLUMNS": "200", "PYTHONPATH": os.pathsep.join(map(str, (OFFLINE, *python_path)))}
    # Buffered as for everybody: a variable of the tests' own shell must not hide a failing flush.
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    return kept | ours | variables


@pytest.fixture
def environment(cache: Path) -> dict[str, str]:
    """The shell that the program is called from: offline, with a key that must not leak."""
    return shell(OPENAI_API_KEY="sk-canary", XDG_CACHE_HOME=str(cache))


@pytest.fixture(scope="session")
def fork_server() -> Iterator[ForkServer]:
    """Runs the program without the time that its imports take."""
    with ForkServer(shell()) as server:
        yield server


@pytest.fixture
def memconform(
    workspace: Path, environment: dict[str, str], fork_server: ForkServer
) -> Callable[..., Ended]:
    """Calls the program, each time in a process of its own."""

    def call(*args: str | Path, timeout: float = CALL_SECONDS) -> Ended:
        ended = fork_server.run(args, folder=workspace, environment=environment, timeout=timeout)
        return Ended(ended.returncode, ended.stdout, ended.stderr, workspace)

    return call


@pytest.fixture
def installed(workspace: Path, environment: dict[str, str]) -> Callable[..., Ended]:
    """Calls the program as a shell does, with an interpreter that starts for it.

    For what a fork could hide: a verb's own imports, the ends of streams, and variables that an
    interpreter reads as it starts.
    """

    def call(*args: str | Path, timeout: float = CALL_SECONDS) -> Ended:
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
        ready_s: float = WAIT_SECONDS,
        port: str = "announced",
        first: str = "",
        on: str = f"box{STRUCK}?",
    ) -> Path:
        argv = ["{python}", "-m", "tests.fakes.scripted", "--addr", "{addr}"]
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
