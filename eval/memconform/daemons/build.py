"""Building an SDK once for each state of its sources."""

import asyncio
import fcntl
import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from platformdirs import user_cache_path

from memconform.daemons.manifest import Build, Manifest
from memconform.daemons.process import DaemonProcess, tail
from memconform.daemons.program_files import program_identity, tool_identity
from memconform.daemons.runner import Progress
from memconform.errors import DaemonError, UsageError
from memconform.printing.logs import Logger

_log = Logger()

_DONE = ".complete"
_UNUSED_SECONDS = 7 * 24 * 3600
_UNAVAILABLE = 69
"""EX_UNAVAILABLE of sysexits.h: by it a build says that this machine lacks what it needs."""
_NEWS_SECONDS = 10
_NEWS_WIDTH = 80


def build_hash(manifest: Manifest, folder: Path) -> str:
    """SHA-256 over the manifest, the tools, every input file, and the files that are served.

    Raises:
        UsageError: for a glob of `[build] inputs` that matches no file.
    """
    digest = hashlib.sha256(manifest.model_dump_json().encode())
    # A virtual environment is bound to its interpreter, a native module to its platform.
    interpreter = Path(sys.executable).resolve()
    digest.update(f"{interpreter}\0{sys.version}\0{os.uname().machine}".encode())
    for program in manifest.requires:
        digest.update(tool_identity(program).encode())
    for line in program_identity(manifest.serve.argv, folder):
        digest.update(line.encode())
    for pattern in manifest.build.inputs if manifest.build else ():
        try:
            files = sorted(path for path in folder.glob(pattern) if path.is_file())
        except (NotImplementedError, ValueError):
            # What pathlib raises for an absolute or an empty pattern.
            files = []
        if not files:
            raise UsageError(
                f"{folder / 'sdk.toml'}: [build] inputs: {pattern!r} matches no file",
                code="manifest_invalid",
                hint="globs are relative to the manifest's folder",
            )
        for path in files:
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            digest.update(json.dumps([path.relative_to(folder).as_posix(), content]).encode())
    return digest.hexdigest()


async def ensure_built(manifest: Manifest, folder: Path, key: str, progress: Progress) -> Path:
    """The folder of the finished build, made now unless it is there.

    Raises:
        DaemonError: where a program is missing or the build fails, with the tail of its log.
    """
    for program in manifest.requires:
        if shutil.which(program) is None:
            raise DaemonError(
                f"{manifest.name} needs {program!r}, which is not on PATH",
                code="toolchain_missing",
                hint=f"install {program}, or leave {manifest.name} out",
            )
    cache = user_cache_path("memconform") / "builds"
    target = cache / f"{manifest.name}-{key[:16]}"
    if manifest.build is None:
        return target
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"{cache}: {error.strerror}",
            code="cache_unwritable",
            hint="builds are kept there; set XDG_CACHE_HOME to a folder that can be written",
        ) from error
    async with _locked(target.with_suffix(".lock")):
        if (target / _DONE).exists():
            (target / _DONE).touch()
        else:
            _log.info("build starts", sdk=manifest.name, folder=str(target))
            progress(f"building {manifest.name} (once, until its sources change)")
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir()
            await _run(manifest.name, manifest.build, folder, target, progress)
            (target / _DONE).touch()
            _drop_unused(cache, manifest.name)
    return target


def _drop_unused(cache: Path, name: str) -> None:
    """Remove this SDK's builds that nothing has used for a week."""
    for done in cache.glob(f"{name}-*/{_DONE}"):
        if time.time() - done.stat().st_mtime > _UNUSED_SECONDS:
            shutil.rmtree(done.parent, ignore_errors=True)


async def _followed(name: str, process: DaemonProcess, progress: Progress) -> str:
    """How the build ended; meanwhile its last line is shown now and then."""
    waiting, started = asyncio.ensure_future(process.wait()), time.monotonic()
    try:
        while not (await asyncio.wait([waiting], timeout=_NEWS_SECONDS))[0]:
            last = process.tail().rpartition("\n")[2].strip()
            progress(f"building {name}, {time.monotonic() - started:.0f} s: {last[:_NEWS_WIDTH]}")
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
    # Under a guard, like a daemon: a harness that is killed leaves no build running.
    process = await DaemonProcess.start(argv, env=os.environ, cwd=folder, log=log)
    try:
        async with asyncio.timeout(build.timeout_s):
            ended = await _followed(name, process, progress)
    except TimeoutError:
        raise _failed(name, f"no end after {build.timeout_s:g} s", log) from None
    finally:
        await process.stop()
    if ended == f"exit status {_UNAVAILABLE}":
        raise DaemonError(
            f"{name} cannot be built on this machine",
            code="build_unavailable",
            hint=f"the whole log is in {log}",
            excerpt=tail(log),
        )
    if ended != "exit status 0":
        raise _failed(name, ended, log)


def _failed(name: str, why: str, log: Path) -> DaemonError:
    return DaemonError(
        f"building {name} failed: {why}",
        code="build_failed",
        hint=f"the whole log is in {log}",
        excerpt=tail(log),
    )


@asynccontextmanager
async def _locked(path: Path) -> AsyncIterator[None]:
    """Hold a lock against other runs that would build the same."""
    with _open_descriptor(path) as handle:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                await asyncio.sleep(0.1)
        yield


@contextmanager
def _open_descriptor(path: Path) -> Iterator[int]:
    handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        yield handle
    finally:
        os.close(handle)
