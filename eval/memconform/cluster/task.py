"""What a worker of a cluster does: the work of one shard, by a command of its own.

The command runs below a guard, so that a worker that is killed leaves no process. What it has
journalled is kept at the scheduler every second, from which another worker continues.
"""

import asyncio
import io
import os
import re
import shutil
import sys
import tarfile
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil
from distributed import Event, Variable

from memconform import __version__
from memconform.cluster.relay import relayed_calls
from memconform.daemons.process import PROGRAM, DaemonProcess
from memconform.errors import MemconformError
from memconform.printing.logs import configure_logs
from memconform.storage.sink import unwritable, write_whole
from memconform.storage.temporary import remove_folder, temporary_folder
from memconform.user_cache import cache_folder

RUNS: Final = "runs"
"""Folder of the runs in a results folder."""

_PREFIX: Final = "memconform-shard-"
_POLL_SECONDS: Final = 1.0
_SHARE: Final = 0.05
"""The share of the time that keeping the progress may take: a journal grows, and is sent whole."""
_SCHEDULER_SECONDS: Final = 60
"""How long the scheduler may take to answer; it keeps what was measured."""
_ENDED: Final = re.compile(r"exit status (\d+)")
_OF_THE_WORKER: Final = frozenset(
    {
        *("toolchain_missing", "build_failed", "build_unavailable", "cache_unwritable"),
        *("disk_full", "results_unwritable", "journal_unwritable", "out_of_memory"),
        *("too_many_files", "too_many_processes", "no_loopback"),
        # Shards are of one command: what differs is the build, by the tools of this machine.
        "resume_mismatch",
        # Its variables and its network.
        *("no_api_key", "llm_unreachable", "llm_proxy", "llm_certificate"),
    }
)
"""Codes of errors that say something of a machine, and nothing of what is measured."""
_CODE: Final = re.compile(r"^\s*([a-z][a-z0-9_]+): ", re.MULTILINE)

Files = Mapping[str, bytes]
"""Files of a results folder, by their paths in it."""


class UnfitWorkerError(Exception):
    """A worker cannot do a shard, and another one may."""

    def __init__(self, worker: str, reason: str) -> None:
        super().__init__(worker, reason)
        self.worker = worker
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Bundle:
    """Files that a command line names, for a worker that does not see them."""

    digest: str
    archive: bytes
    """A tar of the files."""


@dataclass(frozen=True, slots=True)
class ShardTask:
    """The work of one shard."""

    command: tuple[str, ...]
    """The verb and its flags, without --shard and --output; `{inputs}` stands for the bundle."""
    shard: str
    run: str
    """Of the command that has the shards done, until it loses the scheduler."""
    continues_by_flag: bool
    """Whether the command continues by --resume; otherwise by the same folder."""
    folder: str | None
    """The working folder; None for the worker's own."""
    calls: str
    """The variable that tells the command how to call whoever has it done."""
    version: str = __version__
    python: str = f"{sys.version_info.major}.{sys.version_info.minor}"

    @property
    def key(self) -> str:
        """As `shard_key`."""
        return shard_key(self.run, self.shard)


def shard_key(run: str, shard: object) -> str:
    """The name of a shard's progress and of the signal to stop it, at the scheduler."""
    return f"memconform-{run}-{shard}"


@dataclass(frozen=True, slots=True)
class ShardResult:
    """What came of a shard."""

    exit_code: int | None
    """None if it was stopped before its end."""
    files: Files = field(repr=False)
    """Its results folder."""
    log: str
    """The end of what the command printed."""
    inputs: str = ""
    """Where the worker had the bundle; empty without one."""


def measure(task: ShardTask, bundle: Bundle | None) -> ShardResult:
    """Do the work of a shard; called on a worker.

    Raises:
        UnfitWorkerError: if this worker cannot.
    """
    # The name that the worker is known by; the address may be another one behind a gateway.
    from distributed import get_worker  # noqa: PLC0415 - a worker's own

    configure_logs("warning")
    worker = get_worker().address
    own = (__version__, f"{sys.version_info.major}.{sys.version_info.minor}")
    if own != (task.version, task.python):
        raise UnfitWorkerError(
            worker,
            f"it has memconform {own[0]} on Python {own[1]}, and not {task.version} on"
            f" {task.python}",
        )
    try:
        drop_abandoned(_PREFIX)
        inputs = "" if bundle is None else str(_unpacked(bundle))
        with temporary_folder(f"{_PREFIX}{os.getpid()}-") as folder:
            result = asyncio.run(_measure(task, folder, inputs))  # noqa: TID251 - no terminal is here
    except (OSError, MemconformError, ValueError) as error:
        raise UnfitWorkerError(worker, str(error)) from error
    if result.exit_code and not result.log:
        # A command that fails prints why; its log is empty if the disk is full.
        reason = f"the command ended with exit code {result.exit_code}, and could not say why"
        raise UnfitWorkerError(worker, f"{reason}: is {tempfile.gettempdir()} full?")
    known = _OF_THE_WORKER.intersection(_CODE.findall(result.log))
    # Workers of this machine are all alike.
    if result.exit_code and known and task.folder is None:
        raise UnfitWorkerError(worker, next(_of(known, result.log)))
    return result


def _of(codes: Collection[str], log: str) -> Iterator[str]:
    """The lines that begin with one of these codes."""
    lines = map(str.strip, log.splitlines())
    return (line for line in lines if line.partition(":")[0] in codes)


async def _measure(task: ShardTask, folder: Path, inputs: str) -> ShardResult:
    output, log = folder / "output", folder / "log"
    progress, stop = Variable(task.key), Event(f"stop-{task.key}")
    earlier = progress.get(timeout=_SCHEDULER_SECONDS)
    write_files(output, earlier)
    if stop.is_set():
        return ShardResult(None, earlier, "")
    command = [part.replace("{inputs}", inputs) for part in task.command]
    command += ["--shard", task.shard, "--output", str(output)]
    if task.continues_by_flag and (run := _last_run(output)) is not None:
        command += ["--resume", str(run)]
    async with relayed_calls(task.run, task.key) as calls:
        process = await DaemonProcess.start(
            [*PROGRAM, *command],
            env=os.environ | {task.calls: calls},
            cwd=folder if task.folder is None else Path(task.folder),
            log=log,
        )
        how, stopped = await _waited(process, output, earlier, progress, stop)
    status = _ENDED.fullmatch(how)
    if status is None and not stopped:
        # Such as for lack of memory; another machine may have more.
        raise OSError(f"the command was {how}")
    code = None if stopped or status is None else int(status[1])
    return ShardResult(code, read_files(output), process.tail(), inputs)


async def _waited(
    process: DaemonProcess, output: Path, kept: Files, progress: Variable, stop: Event
) -> tuple[str, bool]:
    """Wait for the command's end, and keep what it journals; returns how it ended, and whether it
    was stopped.
    """
    stopped, due = False, 0.0
    try:
        ended = asyncio.ensure_future(process.wait())
        while not (await asyncio.wait([ended], timeout=_POLL_SECONDS))[0]:
            now = time.monotonic()
            if now >= due and (journalled := journals(output)) != kept:
                kept = journalled
                progress.set(kept)
                due = now + (time.monotonic() - now) / _SHARE
            if stop.is_set():
                stopped = True
                await process.stop()
        return ended.result(), stopped
    finally:
        await process.stop()


def is_journal(name: str) -> bool:
    """Whether a command needs a file to continue: a journal, or what says of what it is."""
    return name.endswith((".jsonl", "manifest.json"))


def journals(output: Path) -> dict[str, bytes]:
    """What a command needs to continue, by the paths in its results folder."""
    return {name: content for name, content in _files_of(output) if is_journal(name)}


def read_files(output: Path) -> dict[str, bytes]:
    """All files of a results folder but the states of daemons, by their paths in it."""
    return dict(_files_of(output))


def _files_of(output: Path) -> Iterator[tuple[str, bytes]]:
    # Daemons change what lies below `state` while this looks; what vanishes is nothing of ours.
    for folder, folders, names in os.walk(output):
        folders[:] = sorted(name for name in folders if name != "state")
        for name in sorted(names):
            path = Path(folder, name)
            with suppress(FileNotFoundError):
                yield path.relative_to(output).as_posix(), path.read_bytes()


def write_files(output: Path, files: Files) -> None:
    """Write files into a folder.

    Raises:
        ResultsError: if one cannot be written (`results_unwritable`).
        ValueError: for a name that leads out of the folder: whoever reaches the scheduler can send
            one.
    """
    for name, content in files.items():
        path = output / name
        if not path.resolve().is_relative_to(output.resolve()):
            raise ValueError(f"{name!r} is outside of {output}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(path.parent, error) from error
        write_whole(path, content)


def _last_run(output: Path) -> Path | None:
    """The run to continue: the last one that has a journal."""
    runs = sorted((output / RUNS).glob("*/journal.jsonl"))
    return runs[-1].parent if runs else None


def _unpacked(bundle: Bundle) -> Path:
    """The folder of a bundle's files, which each machine unpacks once, for this user alone."""
    parent = cache_folder() / "inputs"
    parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder = parent / bundle.digest
    if not folder.is_dir():
        made = parent / f"{bundle.digest}.{os.getpid()}"
        try:
            with tarfile.open(fileobj=io.BytesIO(bundle.archive)) as archive:
                archive.extractall(made, filter="data")
            # Unless another worker of this machine was first.
            with suppress(OSError):
                made.rename(folder)
        finally:
            remove_folder(made)
    return folder


def drop_abandoned(prefix: str) -> None:
    """Delete temporary folders of processes of this machine that were killed.

    Args:
        prefix: of their names, which the number of the process follows.
    """
    for path in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        owner = path.name.removeprefix(prefix).partition("-")[0]
        if owner.isdecimal() and not psutil.pid_exists(int(owner)):
            with suppress(OSError):
                shutil.rmtree(path)
