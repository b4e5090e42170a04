"""The undo journal of a commit, on disk so that it outlives the process."""

import errno
import fcntl
import json
import logging
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Self

from memoryd.locks import lock_file

_NAME = "journal"

_log = logging.getLogger(__name__)


class _Step(NamedTuple):
    target: str
    """Relative to the state folder, which may be moved."""
    old: str | None
    """The name in the work folder of what was at `target`; None if a folder is created."""
    placed: Sequence[int] | None
    """The identity of the file that is moved to `target`, if any."""


class Journal:
    """Records each step before it is taken; undoing a step that was not taken does no harm.

    The process holds a lock on the journal, so that no other process undoes a commit in progress.
    """

    def __init__(self, work: Path, home: Path) -> None:
        self._work = work
        self._home = home
        self._steps: list[_Step] = []
        # Renamed once it is locked, so that nobody finds it unlocked.
        unlocked = work / f"{_NAME}.new"
        self._file = unlocked.open("ab", buffering=0)
        fcntl.flock(self._file, fcntl.LOCK_EX)
        unlocked.rename(work / _NAME)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def record_folder(self, folder: Path) -> None:
        self._record(folder, None, None)

    def record_move(self, target: Path, old: Path, new: Path | None = None) -> None:
        """Record that `target`, if it exists, moves to `old`, and then `new` to `target`."""
        self._record(target, old.name, None if new is None else _identity(new))

    def _record(self, target: Path, old: str | None, placed: Sequence[int] | None) -> None:
        step = _Step(str(target.relative_to(self._home)), old, placed)
        line = json.dumps(step).encode() + b"\n"
        if self._file.write(line) != len(line):
            raise OSError(errno.ENOSPC, "the journal cannot be written")
        self._steps.append(step)

    def finish(self) -> None:
        (self._work / _NAME).unlink()

    def undo(self) -> bool:
        """Undo all steps; if it returns False, the work folder holds the only copy of files."""
        return _undo(self._steps, self._work, self._home)


def has_journal(work: Path) -> bool:
    return (work / _NAME).exists()


def recover(work: Path, home: Path) -> bool:
    """Undo the commit of a killed process; returns whether the work folder can be removed."""
    journal = work / _NAME
    lock = lock_file(journal)
    if lock is None:
        return False
    try:
        return _undo(_steps(journal.read_bytes()), work, home)
    finally:
        os.close(lock)


def _steps(data: bytes) -> list[_Step]:
    # A line without its newline was cut off by the kill, before its step was taken.
    return [_Step(*json.loads(line)) for line in data.split(b"\n")[:-1]]


def _undo(steps: Sequence[_Step], work: Path, home: Path) -> bool:
    complete = True
    for step in reversed(steps):
        try:
            _undo_step(step, work, home)
        except OSError as error:
            complete = False
            _log.error("%s: cannot undo %r: %s", work, step.target, error.strerror)
    return complete


def _undo_step(step: _Step, work: Path, home: Path) -> None:
    target = home / step.target
    if step.old is None:
        with suppress(FileNotFoundError):
            target.rmdir()
        return
    old = work / step.old
    current, former = _identity(target), _identity(old)
    # Any other file was put there later and is newer than both.
    replaceable = current is None or current in (step.placed, former)
    if former is None:
        if current is not None and current == step.placed:
            target.unlink()
    elif replaceable and _brain_of(step, home).is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        old.replace(target)


def _brain_of(step: _Step, home: Path) -> Path:
    """The brain's folder: steps are below `brains/ID` for documents and `meta/ID` for sidecars."""
    return home / "brains" / Path(step.target).parts[1]


def _identity(file: Path) -> list[int] | None:
    """The same for every name of a file, and different for different files."""
    try:
        state = file.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return [state.st_ino, state.st_mtime_ns]
