"""Builds an SDK once for each state of its sources and caches the result."""

import asyncio
import fcntl
import hashlib
import json
import os
import re
import shutil
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from itertools import count
from pathlib import Path
from typing import Protocol

from memconform.daemons.environment import for_build, shell_variables
from memconform.daemons.limits import DISK_BYTES, is_shown
from memconform.daemons.manifest import Build, Manifest
from memconform.daemons.process import DaemonProcess, tail
from memconform.daemons.program_files import program_identity, tool_identity
from memconform.daemons.sdk_runner import Progress
from memconform.errors import DaemonError, MemconformError, UsageError
from memconform.printing.logs import Logger
from memconform.user_cache import builds_folder

_log = Logger()

_DONE = ".complete"
_UNUSED_SECONDS = 7 * 24 * 3600
_ANOTHER = "set XDG_CACHE_HOME to another folder that can be written"
_NOT_UTF8 = re.compile(
    r"surrogates not allowed|UnicodeEncodeError|UnicodeDecodeError|illegal byte sequence"
    r"|invalid (?:UTF-8|unicode)|malformed UTF-8",
    re.IGNORECASE,
)
"""How tools say that they cannot use such a path."""
_REMEDIES = {"cache_unwritable": _ANOTHER, "disk_full": f"free space, or {_ANOTHER}"}
_UNAVAILABLE = 69
"""EX_UNAVAILABLE of sysexits.h: the exit status of a build that this machine cannot run."""
_PROGRESS_SECONDS = 10
_PROGRESS_WIDTH = 80
_VARIABLE_ROOT = re.compile(r"\$\{(\w+)\}/")


class Buildable(Protocol):
    """What is built once: an SDK, or the packages of an adapter."""

    @property
    def name(self) -> str: ...

    @property
    def requires(self) -> Sequence[str]:
        """Programs that must be on PATH."""
        ...

    @property
    def build(self) -> Build | None: ...


def build_hash(manifest: Manifest, folder: Path) -> str:
    """SHA-256 of the manifest, of the build, and of the program that is served; raises as
    `build_key`.
    """
    # The client is another program, whose driver is built for itself.
    digest = hashlib.sha256(manifest.model_dump_json(exclude={"client"}).encode())
    digest.update(build_key(manifest, folder).encode())
    for line in program_identity(manifest.serve.argv, folder):
        digest.update(line.encode())
    return digest.hexdigest()


def build_key(manifest: Buildable, folder: Path) -> str:
    """SHA-256 of `[build]`, the tools and every input file, by which builds are cached.

    What a manifest says of the daemon's wire, seeding or claims makes no other build.

    Raises:
        UsageError: `manifest_invalid` if a glob of `[build] inputs` matches no file, or begins with
            a variable that is not set.
    """
    digest = hashlib.sha256()
    if manifest.build is not None:
        digest.update(manifest.build.model_dump_json().encode())
    # A virtual environment is bound to its interpreter, a native module to its platform.
    interpreter = Path(sys.executable).resolve()
    digest.update(f"{interpreter}\0{sys.version}\0{os.uname().machine}".encode())
    for program in manifest.requires:
        digest.update(tool_identity(program).encode())
    for pattern in manifest.build.inputs if manifest.build else ():
        root, glob = _input_root(pattern, folder)
        try:
            files = sorted(path for path in root.glob(glob) if path.is_file())
        except (NotImplementedError, ValueError):
            # pathlib raises these for absolute and empty patterns.
            files = []
        if not files:
            raise UsageError(
                f"{folder / 'sdk.toml'}: [build] inputs: {pattern!r} matches no file",
                code="manifest_invalid",
                hint="globs are relative to the manifest's folder, or to ${NAME}, a variable that"
                " holds a folder",
            )
        for path in files:
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            digest.update(json.dumps([path.relative_to(root).as_posix(), content]).encode())
    return digest.hexdigest()


def _input_root(pattern: str, folder: Path) -> tuple[Path, str]:
    """The folder that a glob of `[build] inputs` is relative to, and the glob."""
    variable = _VARIABLE_ROOT.match(pattern)
    if variable is None:
        return folder, pattern
    value = shell_variables([variable[1]]).get(variable[1])
    if value is None:
        raise UsageError(
            f"{folder / 'sdk.toml'}: [build] inputs: {variable[1]} is not set",
            code="manifest_invalid",
            hint=f"set {variable[1]} to the folder of the sources, as the manifest says",
        )
    return Path(value), pattern[variable.end() :]


async def ensure_built(
    manifest: Buildable,
    folder: Path,
    key: str,
    progress: Progress,
    *,
    cache: Path | None = None,
) -> Path:
    """Build the SDK unless a build for `key` exists; returns the build's folder.

    Args:
        manifest: The SDK, or the adapter.
        folder: Where the build runs.
        key: Identifies the state of the sources.
        progress: Receives lines for the user.
        cache: Holds the builds; None for the one in the user's cache folder.

    Raises:
        DaemonError: `toolchain_missing` if a required program is not on PATH; `build_failed` or
            `build_unavailable`, with the tail of the build log, if the build fails.
        UsageError: `cache_unwritable` if the cache folder cannot be created, or the build's output
            shows that it cannot use its path; `disk_full` if the output shows that.
    """
    for program in manifest.requires:
        if shutil.which(program) is None:
            raise DaemonError(
                f"{manifest.name} needs {program!r}, which is not on PATH",
                code="toolchain_missing",
                hint=f"install {program}, or run without {manifest.name}",
            )
    if manifest.build is None:
        # Nothing is kept, so a user without a home needs no place for it.
        return folder
    cache = cache or builds_folder()
    target = cache / f"{manifest.name}-{key[:16]}"
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"{cache}: {error.strerror}",
            code="cache_unwritable",
            hint=f"builds are cached there; {_ANOTHER}",
        ) from error
    waiting = f"waiting for another process that builds {manifest.name}"
    async with _locked(target.with_suffix(".lock"), lambda: progress(waiting)):
        if (target / _DONE).exists():
            (target / _DONE).touch()
        else:
            _log.info("build starts", sdk=manifest.name, folder=str(target))
            progress(f"building {manifest.name} (once, until its sources change)")
            started = time.monotonic()
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir()
            await _run(manifest.name, manifest.build, folder, target, progress)
            (target / _DONE).touch()
            progress(f"built {manifest.name} in {time.monotonic() - started:.0f} s")
            _drop_unused(cache, manifest.name)
    return target


def _drop_unused(cache: Path, name: str) -> None:
    """Remove builds of this SDK that have not been used for a week."""
    for marker in cache.glob(f"{name}-*/{_DONE}"):
        if time.time() - marker.stat().st_mtime > _UNUSED_SECONDS:
            shutil.rmtree(marker.parent, ignore_errors=True)


async def _wait_with_progress(name: str, process: DaemonProcess, progress: Progress) -> str:
    """Wait for a build, reporting its last line regularly; returns how it ended."""
    waiting, started = asyncio.ensure_future(process.wait()), time.monotonic()
    try:
        while not (await asyncio.wait([waiting], timeout=_PROGRESS_SECONDS))[0]:
            last = process.tail().rpartition("\n")[2].strip()
            progress(
                f"building {name}, {time.monotonic() - started:.0f} s: {last[:_PROGRESS_WIDTH]}"
            )
        return waiting.result()
    finally:
        waiting.cancel()


async def _run(name: str, build: Build, folder: Path, target: Path, progress: Progress) -> None:
    log = target.with_suffix(".log")
    log.unlink(missing_ok=True)
    argv = [
        part.replace("{build_dir}", str(target)).replace("{python}", sys.executable)
        for part in build.command
    ]
    # A guard ends the build, like a daemon, if the harness is killed.
    env = for_build(target.parent)
    process = await DaemonProcess.start(argv, env=env, cwd=folder, log=log)
    try:
        async with asyncio.timeout(build.timeout_s):
            outcome = await _wait_with_progress(name, process, progress)
    except TimeoutError:
        raise _failed(name, f"not finished after {build.timeout_s:g} s", log) from None
    finally:
        await process.stop()
    if outcome == f"exit status {_UNAVAILABLE}":
        raise DaemonError(
            f"{name} cannot be built on this machine",
            code="build_unavailable",
            hint=f"the full log is in {log}",
            excerpt=tail(log),
        )
    if outcome != "exit status 0":
        raise _failed(name, outcome, log)


def _failed(name: str, reason: str, log: Path) -> MemconformError:
    """The error of a build that failed: about its folder, if the build's output shows that.

    Otherwise what is wrong with the folder is a likely cause, and a typing error is another.
    """
    cache, excerpt = log.parent, tail(log)
    code = cause = ""
    is_certain = False
    free = shutil.disk_usage(cache).free
    if not _is_utf8(cache):
        code, cause = "cache_unwritable", "its path is not valid UTF-8"
        is_certain = _NOT_UTF8.search(excerpt) is not None
    elif free < DISK_BYTES:
        code, cause = "disk_full", f"{free >> 20} MiB are free there"
        is_certain = is_shown(code, excerpt)
    full_log = f"the full log is in {log}"
    if is_certain:
        return UsageError(
            f"{cache}: {name} cannot be built there, because {cause}",
            code=code,
            hint=f"{_REMEDIES[code]}; {full_log}",
            excerpt=excerpt,
        )
    likely = f"a likely cause is {cache}: {cause}: {_REMEDIES[code]}; " if cause else ""
    return DaemonError(
        f"building {name} failed: {reason}",
        code="build_failed",
        hint=f"{likely}{full_log}",
        excerpt=excerpt,
    )


def _is_utf8(path: Path) -> bool:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


@asynccontextmanager
async def _locked(path: Path, waiting: Callable[[], None]) -> AsyncIterator[None]:
    """Hold a lock that keeps other runs from building the same SDK.

    `waiting` is called once if another run holds it.
    """
    with _open_descriptor(path) as handle:
        for attempt in count():
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if attempt == 0:
                    waiting()
                await asyncio.sleep(0.1)
        yield


@contextmanager
def _open_descriptor(path: Path) -> Iterator[int]:
    handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        yield handle
    finally:
        os.close(handle)
