"""A home, a cache and a temporary folder for each test session, and the proof that it leaves none.

A session creates one folder below the system's temporary folder (paths of sockets are short there)
and gives it to every process that it starts, as HOME and TMPDIR. What of the user's shell would
change the program or the daemons is unset (`is_users`): a ledger, prices, keys, colours. Proxies
stay, because daemons are built within a session, and may fetch packages. The folder is removed at
the end, or by the next session of this checkout if tests failed or the session was killed.

What only makes a build faster stays the user's: the caches and settings of go, npm, pip, git and
version managers are passed on by their own variables. So do downloaded models, by a link in the new
home. Reference daemons are built in the checkout's `.pytest_cache`, by content; their builds are
linked into the session's cache (`cache` in conftest.py).

At the end of a session no process may be left that was started from its folder, and nothing of
memconform may be new in the user's cache or in the system's temporary folder.
"""

import fcntl
import os
import secrets
import shutil
import subprocess
import tempfile
import zlib
from collections.abc import Generator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

_CHECKOUT = Path(__file__).parents[2]

_END_SECONDS = 60
"""A process that was killed last is gone in a moment, except on a machine that swaps."""

_TOOL_FOLDERS = {
    "ASDF_DATA_DIR": ".asdf",
    "GIT_CONFIG_GLOBAL": ".gitconfig",
    "NPM_CONFIG_CACHE": ".npm",
    "NPM_CONFIG_USERCONFIG": ".npmrc",
    "PIP_CONFIG_FILE": ".config/pip/pip.conf",
    "PYENV_ROOT": ".pyenv",
    "VOLTA_HOME": ".volta",
}
"""What a tool takes from the home folder unless a variable names another place."""

_GO_VARIABLES = ("GOCACHE", "GOENV", "GOMODCACHE", "GOPATH")

_USERS_PREFIXES = (
    *("XDG_", "MEMCONFORM_", "JB_", "TTY_"),
    *("OPENAI_", "ANTHROPIC_", "GEMINI_", "AZURE_OPENAI_"),
)
_USERS_NAMES = ("OLLAMA_HOST", "NO_COLOR", "FORCE_COLOR")
_FOR_TESTS = ("MEMCONFORM_REQUIRE_ALL", "MEMCONFORM_DATA")
"""What a user says to the tests."""

NOTE = "note: "
"""Before what may be another program's, and fails no session."""

_TEMPORARY_NAMES = ("memconform-*", "mc-*")
"""What the program calls its temporary folders."""


def is_users(name: str) -> bool:
    """Whether a variable of the user's shell must not reach the tests."""
    return name not in _FOR_TESTS and (name in _USERS_NAMES or name.startswith(_USERS_PREFIXES))


def _tool_variables(home: Path, caches: Path) -> dict[str, str]:
    """Variables by which tools find the user's caches and settings from another home folder."""
    places = {name: home / folder for name, folder in _TOOL_FOLDERS.items()}
    places["PIP_CACHE_DIR"] = caches / "pip"
    variables = {
        name: str(place)
        for name, place in places.items()
        if name not in os.environ and name.lower() not in os.environ and place.exists()
    }
    if (go := shutil.which("go")) is not None:
        found = subprocess.run(
            [go, "env", *_GO_VARIABLES], capture_output=True, text=True, check=True
        )
        variables |= dict(zip(_GO_VARIABLES, found.stdout.splitlines(), strict=True))
    return variables


@dataclass
class Isolation:
    """The folder of a session, and what was outside it at the beginning."""

    base: Path
    _lock: int
    _before: frozenset[Path] = field(default_factory=frozenset)
    _outside: tuple[tuple[Path, str], ...] = ()
    """Folders of the user, and which of their entries could be ours."""

    @classmethod
    def begin(cls) -> "Isolation":
        """Create the folder and make it this process's home."""
        system = Path(tempfile.gettempdir()).resolve()
        home = Path.home()
        caches = _cache_folder(os.environ)
        # The checkout's name in it: another clone may still look at what its own tests left.
        prefix = f"mct-{zlib.crc32(str(_CHECKOUT).encode()):08x}-"
        _remove_abandoned(system, prefix)
        base = system / f"{prefix}{secrets.token_hex(3)}"
        base.mkdir(mode=0o700)
        lock = os.open(base / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC)
        fcntl.flock(lock, fcntl.LOCK_EX)
        variables = _tool_variables(home, caches.parent)
        models = _models_folder(home)
        for name in [name for name in os.environ if is_users(name)]:
            del os.environ[name]
        for variable, name in (("HOME", "home"), ("TMPDIR", "tmp")):
            (base / name).mkdir()
            variables[variable] = str(base / name)
        if models is not None:
            link = base / "home" / ".local" / "share" / "memconform"
            link.mkdir(parents=True)
            (link / "models").symlink_to(models)
        os.environ |= variables
        tempfile.tempdir = None
        outside = ((caches, "*"), (caches, "*/*"), *((system, g) for g in _TEMPORARY_NAMES))
        return cls(base, lock, frozenset(_entries(outside)), outside)

    def leftovers(self) -> list[str]:
        """What the session has left outside its folder; ends processes that it has left."""
        processes = processes_below(self.base)
        psutil.wait_procs(processes, timeout=_END_SECONDS)
        left = [f"process {_described(process)}" for process in processes_below(self.base)]
        for process in processes_below(self.base):
            with suppress(psutil.Error):
                process.kill()
        for path in sorted(set(_entries(self._outside)) - self._before):
            other = next(_programs_that_use(path.parent), None)
            # Whose it is cannot be told.
            left.append(str(path) if other is None else f"{NOTE}{path}, or by {_described(other)}")
        return left

    def end(self, *, keep: bool) -> None:
        """Remove the folder, unless it is to be looked at."""
        if not keep:
            _remove(self.base)
        os.close(self._lock)


def processes_below(base: Path) -> list[psutil.Process]:
    """Processes other than ours with a path below `base` in environment, folder or arguments.

    A daemon's environment is an allow-list, but HOME and TMPDIR are on it. What runs in another
    terminal is somebody who looks at the folder.
    """
    text, terminals = str(base), (None, psutil.Process().terminal())
    found = []
    for process in _others():
        with suppress(psutil.Error):
            about = [*process.environ().values(), process.cwd(), *process.cmdline()]
            if any(text in part for part in about) and process.terminal() in terminals:
                found.append(process)
    return found


def _cache_folder(environment: Mapping[str, str]) -> Path:
    """The folder of memconform in a user's cache."""
    home = environment.get("HOME") or Path.home()
    return Path(environment.get("XDG_CACHE_HOME") or Path(home, ".cache")) / "memconform"


def _models_folder(home: Path) -> Path | None:
    """The user's downloaded models, which tests only read."""
    data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    folder = data / "memconform" / "models"
    return folder if folder.is_dir() else None


def _programs_that_use(folder: Path) -> Iterator[psutil.Process]:
    """Calls of memconform that have this cache or temporary folder, and so are not isolated."""
    for process in _others():
        with suppress(psutil.Error):
            environment = process.environ()
            is_program = any("memconform" in part for part in process.cmdline())
            is_theirs = folder.is_relative_to(_cache_folder(environment)) or folder == Path(
                environment.get("TMPDIR") or "/tmp"  # noqa: S108 - their default
            )
            if is_program and is_theirs:
                yield process


def _others() -> Iterator[psutil.Process]:
    me = psutil.Process()
    own = {me.pid, *(parent.pid for parent in me.parents())}
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.pid not in own and process.status() != psutil.STATUS_ZOMBIE:
                yield process


def _described(process: psutil.Process) -> str:
    with suppress(psutil.Error):
        return f"{process.pid} ({' '.join(process.cmdline())[:200]})"
    return str(process.pid)


def _entries(outside: tuple[tuple[Path, str], ...]) -> Iterator[Path]:
    for folder, names in outside:
        yield from folder.glob(names)


def _remove_abandoned(system: Path, prefix: str) -> None:
    """Remove folders of this checkout's sessions that have ended."""
    for folder in system.glob(f"{prefix}*"):
        with suppress(OSError):
            lock = os.open(folder / "lock", os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(folder)
            finally:
                os.close(lock)


def _remove(folder: Path) -> None:
    for path, _, _ in os.walk(folder):
        with suppress(OSError):
            # Some tests make a folder read-only.
            Path(path).chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


_GOOD = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)

_KEY = pytest.StashKey[Isolation]()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Begin before pytest chooses its folder for `tmp_path`; workers get theirs from us."""
    if hasattr(config, "workerinput"):
        return
    isolation = config.stash[_KEY] = Isolation.begin()
    if config.option.basetemp is None:
        config.option.basetemp = isolation.base / "t"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None]:
    """Fail a session that has left something, once all its fixtures and workers have ended."""
    yield
    isolation = session.config.stash.get(_KEY, None)
    if isolation is None:
        return
    left = isolation.leftovers()
    terminal: pytest.TerminalReporter = session.config.pluginmanager.getplugin("terminalreporter")
    for line in left:
        terminal.write_line(f"left behind by the tests: {line}", red=True)
    if any(not line.startswith(NOTE) for line in left):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    if session.exitstatus not in _GOOD:
        terminal.write_line(f"what the tests wrote is in {isolation.base} until the next session")


def pytest_unconfigure(config: pytest.Config) -> None:
    isolation = config.stash.get(_KEY, None)
    if isolation is not None:
        session = config.pluginmanager.get_plugin("session")
        isolation.end(keep=getattr(session, "exitstatus", pytest.ExitCode.OK) not in _GOOD)
