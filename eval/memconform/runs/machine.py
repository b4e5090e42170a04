"""The checks of `doctor` without an SDK: whether this machine and this shell can run anything."""

import asyncio
import locale
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from zoneinfo import ZoneInfo

from memconform.daemons.environment import PROXIES
from memconform.daemons.limits import (
    ALL_MEMORY_BYTES,
    MEMORY_BYTES,
    OTHER_FILES,
    nearest_existing,
    require_file_size,
    require_memory,
    why_unwritable,
)
from memconform.daemons.ports import accepts
from memconform.datasets.sources import data_folder, known_sources
from memconform.errors import DaemonError, MemconformError, UsageError, limit_error
from memconform.llm.budget import Ledger, read_budget
from memconform.llm.names import MODEL_VARIABLES, ModelName
from memconform.llm.prices import Prices
from memconform.llm.services import ModelCheck, model_checks
from memconform.network import certificates, proxy_for
from memconform.runs.doctor import Step
from memconform.user_cache import builds_folder, cache_folder

_ANYWHERE = "services.invalid"
"""A host outside this machine, for what depends on the host."""
_TOOL_SECONDS = 20
_FEW_FILES = 256
_FEW_BYTES, _NO_BYTES = 1 << 30, 64 << 20
"""The build of the Go daemon and its modules take 600 MiB; a run of a few questions 1 MiB."""
_YEAR = 2025
"""Before it, no certificate of today is valid."""

_TOOLS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "git": (("git", "--version"), "results do not name the revision of a checkout"),
    # Unlike `go version`, it reads GOFLAGS.
    "go": (("go", "env", "GOVERSION"), "--sdk all skips SDKs in Go"),
    "node": (("node", "--version"), "--sdk all skips SDKs in TypeScript"),
    "npm": (("npm", "--version"), "--sdk all skips SDKs in TypeScript"),
}
"""How each tool says its version, and what is missing without it."""


def _warning(message: str, code: str, hint: str) -> "_WarningError":
    return _WarningError(message, code=code, hint=hint)


class _WarningError(UsageError):
    """What degrades a run without ending it."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What the checks look at; a test replaces any of it."""

    env: Mapping[str, str] = field(default_factory=lambda: os.environ)
    which: Callable[[str], str | None] = shutil.which
    output_of: Callable[[tuple[str, ...]], str] = field(default_factory=lambda: _output_of)
    """What a program prints; raises OSError or a SubprocessError."""
    accepts: Callable[[str], str | None] = accepts
    files: Callable[[], tuple[int, int]] = lambda: resource.getrlimit(resource.RLIMIT_NOFILE)
    free: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free
    services: Callable[[Mapping[str, str]], Awaitable[list[ModelCheck]]] = model_checks
    now: Callable[[], float] = time.time


async def check_machine(machine: Machine, output: Path) -> AsyncGenerator[Step, None]:
    """Check what every command needs, one step a thing; failures are yielded, not raised.

    A step that is not needed for a run of some kind is a warning.
    """
    yield _step("python", _python)
    for tool in _TOOLS:
        yield await asyncio.to_thread(_step, tool, partial(_tool, machine, tool))
    for check in await machine.services(machine.env):
        yield Step(f"model {check.provider}", check.detail, check.error)
    checks: dict[str, Callable[[], str]] = {
        "proxies": lambda: _proxies(machine.env),
        "certificates": lambda: _certificates(machine.env),
        "builds": lambda: _folder(builds_folder(), "XDG_CACHE_HOME"),
        "cache": lambda: _folder(cache_folder(), "MEMCONFORM_CACHE"),
        "downloads": lambda: _folder(data_folder(), "MEMCONFORM_DATA"),
        "results": lambda: _folder(output, "--output"),
        "temporary files": lambda: _temporary(machine.env),
        "disk": lambda: _disk(machine, output),
        "file sizes": _file_sizes,
        "memory": _memory,
        "open files": lambda: _files(machine),
        "processes": _processes,
        "ports": lambda: _ports(machine),
        "locale": lambda: _locale(machine.env),
        "clock": lambda: _clock(machine),
        "settings": lambda: _settings(machine.env),
    }
    for name, run in checks.items():
        yield await asyncio.to_thread(_step, name, run)


def _step(name: str, run: Callable[[], str]) -> Step:
    try:
        return Step(name, run())
    except _WarningError as error:
        return Step(name, error=error, is_needed=False)
    except MemconformError as error:
        return Step(name, error=error)
    except (OSError, RuntimeError, MemoryError) as error:
        if limit := limit_error(error):
            return Step(name, error=limit)
        raise


def _python() -> str:
    if find_spec("venv") is None or find_spec("ensurepip") is None:
        raise _warning(
            f"Python {platform.python_version()} has no venv or ensurepip",
            "toolchain_missing",
            "install them (python3-venv); the reference SDK in Python is built with both",
        )
    return f"{platform.python_version()}, {sys.executable}"


def _tool(machine: Machine, name: str) -> str:
    argv, consequence = _TOOLS[name]
    path = machine.which(name)
    if path is None:
        raise _warning(
            f"{name} is not on PATH",
            "toolchain_missing",
            f"install {name}; without it {consequence}",
        )
    try:
        return f"{machine.output_of(argv).strip()}, {path}"
    except subprocess.CalledProcessError as error:
        reason = f"{error.stderr or error.stdout}".strip() or f"exit status {error.returncode}"
    except (OSError, subprocess.SubprocessError) as error:
        if limit := limit_error(error):
            raise limit from error
        reason = str(error)
    raise DaemonError(
        f"{' '.join(argv)} fails",
        code="toolchain_broken",
        hint=f"repair {name}, or the variable that it names",
        excerpt=reason,
    )


def _output_of(argv: tuple[str, ...]) -> str:
    return subprocess.run(
        argv,
        capture_output=True,
        check=True,
        encoding="utf-8",
        errors="replace",
        timeout=_TOOL_SECONDS,
        stdin=subprocess.DEVNULL,
    ).stdout


def _proxies(env: Mapping[str, str]) -> str:
    found = {str(proxy) for scheme in ("http", "https") if (proxy := _proxy(scheme, env))}
    if not found:
        ignored = [name for name in PROXIES if env.get(name)]
        return f"{', '.join(ignored)}: NO_PROXY excepts every host" if ignored else "none"
    return f"{', '.join(sorted(found))}; none for this machine"


def _proxy(scheme: str, env: Mapping[str, str]) -> object:
    return proxy_for(f"{scheme}://{_ANYWHERE}", env)


def _certificates(env: Mapping[str, str]) -> str:
    return str(certificates(env, "every https address") or "of the httpx package")


def _folder(folder: Path, setting: str) -> str:
    """Where something is kept, and how much of it is there."""
    if (error := why_unwritable(nearest_existing(folder))) is not None:
        if error.errno is not None and (limit := limit_error(error)):
            raise limit from error
        raise UsageError(
            f"{folder} cannot be written: {error.strerror}",
            code="folder_unwritable",
            hint=f"set {setting} to a folder that can be written",
        ) from error
    files = [path.lstat().st_size for path in folder.rglob("*") if path.is_file()]
    return (
        f"{folder}, {len(files)} files, {sum(files) / 2**20:,.0f} MiB"
        if files
        else f"{folder}, empty"
    )


def _temporary(env: Mapping[str, str]) -> str:
    folder = tempfile.gettempdir()
    named = env.get("TMPDIR")
    if named and Path(named).absolute() != Path(folder).absolute():
        raise _warning(
            f"TMPDIR is {named}, which cannot be written; {folder} is used",
            "folder_unwritable",
            "set TMPDIR to a folder that can be written, or unset it",
        )
    return folder


def _disk(machine: Machine, output: Path) -> str:
    details = []
    for folder in (output, builds_folder(), Path(tempfile.gettempdir())):
        existing = nearest_existing(folder)
        free = machine.free(existing)
        details.append(f"{free / 2**30:,.1f} GiB at {existing}")
        if free < _FEW_BYTES:
            kind = UsageError if free < _NO_BYTES else _WarningError
            raise kind(
                f"{free / 2**20:,.0f} MiB are free at {existing}",
                code="disk_full",
                hint="free space; `memconform cache prune` removes replies that are kept",
            )
    return ", ".join(dict.fromkeys(details)) + " free"


def _file_sizes() -> str:
    require_file_size()
    return f"a file may have {_limit(resource.getrlimit(resource.RLIMIT_FSIZE)[0])} bytes"


def _memory() -> str:
    require_memory(MEMORY_BYTES)
    try:
        require_memory(ALL_MEMORY_BYTES)
    except UsageError as error:
        raise _warning(error.message, "out_of_memory", error.hint) from error
    return f"a program may have {_limit(resource.getrlimit(resource.RLIMIT_AS)[0])} bytes"


def _files(machine: Machine) -> str:
    soft, hard = machine.files()
    if hard != resource.RLIM_INFINITY and hard < _FEW_FILES + OTHER_FILES:
        most = hard - OTHER_FILES
        kind = UsageError if most < 1 else _WarningError
        raise kind(
            f"at most {hard} open files are allowed, enough for --concurrency {max(most, 0)}",
            code="too_few_files",
            hint=f"raise the limit with `ulimit -n {_FEW_FILES + OTHER_FILES}`",
        )
    return f"{_limit(soft)}, raised up to {_limit(hard)} if --concurrency needs it"


def _limit(number: int) -> str:
    return "unlimited" if number == resource.RLIM_INFINITY else f"{number:,}"


def _processes() -> str:
    """Start one, and a thread: only an attempt says whether another is allowed."""
    try:
        subprocess.run([sys.executable, "-I", "-S", "-c", ""], check=True, timeout=_TOOL_SECONDS)
    except subprocess.SubprocessError as error:
        raise UsageError(
            f"Python cannot be started once more: {error}",
            code="too_many_processes",
            hint=f"repair {sys.executable}, or raise the limits with `ulimit`",
        ) from error
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()
    _, most = resource.getrlimit(resource.RLIMIT_NPROC)
    return f"one more can be started, the limit is {_limit(most)}"


def _ports(machine: Machine) -> str:
    faults = {host: machine.accepts(host) for host in ("127.0.0.1", "::1")}
    working = [host for host, fault in faults.items() if fault is None]
    if not working:
        raise UsageError(
            f"a program cannot connect to itself at 127.0.0.1: {faults['127.0.0.1']}",
            code="no_loopback",
            hint="bring up the loopback interface (`ip link set lo up`)",
        )
    missing = [f"; {host}: {fault}" for host, fault in faults.items() if fault is not None]
    return f"daemons can listen at {' and '.join(working)}{''.join(missing)}"


def _locale(env: Mapping[str, str]) -> str:
    named = env.get("LC_ALL") or env.get("LC_CTYPE") or env.get("LANG") or "none"
    before = locale.setlocale(locale.LC_CTYPE)
    try:
        locale.setlocale(locale.LC_CTYPE, "")
    except locale.Error:
        raise _warning(
            f"the locale {named} is not installed",
            "no_locale",
            "install it, or export LC_ALL=C.UTF-8; results are UTF-8 in any case",
        ) from None
    finally:
        locale.setlocale(locale.LC_CTYPE, before)
    return f"{named}, file names in {sys.getfilesystemencoding()}"


def _clock(machine: Machine) -> str:
    now = time.gmtime(machine.now())
    if now.tm_year < _YEAR:
        raise _warning(
            f"the clock says {now.tm_year}",
            "wrong_clock",
            "set the clock: results are dated by it, and no certificate is valid yet",
        )
    shown = time.strftime("%Y-%m-%dT%H:%MZ", now)
    zone = machine.env.get("TZ", "").removeprefix(":")
    if zone and not _is_zone(zone):
        raise _warning(
            f"{shown}; TZ is {zone!r}, which is no time zone",
            "wrong_clock",
            "export TZ=UTC or the name of a zone; results are in UTC in any case",
        )
    return f"{shown}, results are dated in UTC"


def _is_zone(name: str) -> bool:
    if any(character.isdigit() for character in name):
        return True  # a rule of POSIX, such as CET-1CEST
    try:
        ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        return False
    return True


def _settings(env: Mapping[str, str]) -> str:
    """Read what the variables of this program name; each raises if it cannot be used."""
    prices = Prices.load()
    sources = known_sources()
    Ledger().close()
    read_budget(None, env)
    for variable in MODEL_VARIABLES:
        if named := env.get(variable, "").strip():
            ModelName.parse(named, env, source=variable)
    return f"{len(sources)} sources of benchmarks, prices of {prices.as_of}"
