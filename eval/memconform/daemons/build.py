"""Building an SDK once for each state of its sources."""

import asyncio
import fcntl
import hashlib
import json
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import structlog
from platformdirs import user_cache_path

from memconform.daemons.manifest import Build, Manifest
from memconform.daemons.process import tail
from memconform.daemons.runner import Progress
from memconform.errors import DaemonError, UsageError

_log = structlog.get_logger()

_DONE = ".complete"


def build_hash(manifest: Manifest, folder: Path) -> str:
    """SHA-256 over the manifest and every input file, its path and its content.

    Raises:
        UsageError: for a glob of `[build] inputs` that matches no file.
    """
    digest = hashlib.sha256(manifest.model_dump_json().encode())
    # A virtual environment is bound to its interpreter, a native module to its platform.
    digest.update(f"{sys.executable}\0{sys.version}\0{os.uname().machine}".encode())
    for pattern in manifest.build.inputs if manifest.build else ():
        files = sorted(path for path in folder.glob(pattern) if path.is_file())
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
    cache.mkdir(parents=True, exist_ok=True)
    target = cache / f"{manifest.name}-{key[:16]}"
    if manifest.build is None or (target / _DONE).exists():
        target.mkdir(exist_ok=True)
        return target
    async with _locked(target.with_suffix(".lock")):
        if not (target / _DONE).exists():
            _log.info("build starts", sdk=manifest.name, folder=str(target))
            progress(f"building {manifest.name} (once, until its sources change)")
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir()
            await _run(manifest.name, manifest.build, folder, target)
            (target / _DONE).touch()
    return target


async def _run(name: str, build: Build, folder: Path, target: Path) -> None:
    log = target.with_suffix(".log")
    argv = [
        part.replace("{build_dir}", str(target)).replace("{python}", sys.executable)
        for part in build.command
    ]
    with log.open("wb") as output:
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                cwd=folder,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        except OSError as error:
            raise _failed(name, f"{argv[0]}: {error.strerror}", log) from error
    try:
        status = await asyncio.wait_for(process.wait(), build.timeout_s)
    except TimeoutError:
        raise _failed(name, f"no end after {build.timeout_s:g} s", log) from None
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if status != 0:
        raise _failed(name, f"exit status {status}", log)


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
