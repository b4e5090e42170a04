"""How a change of files that was not finished is taken back, also by a later process."""

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
    """Relative to the home folder, so that it may be moved."""
    old: str | None
    """The name that what was at `target` has in the work folder; None where a folder is made."""
    placed: Sequence[int] | None
    """The identity of the file that comes to `target`, if one does."""


class Journal:
    """Each step is noted before it is done; one that was not done is no harm to take back.

    The lock on it is held as long as its process lives, which tells others whose it is.
    """

    def __init__(self, work: Path, home: Path) -> None:
        self._work = work
        self._home = home
        self._steps: list[_Step] = []
        # Under its name it is never seen without its lock.
        unlocked = work / f"{_NAME}.new"
        self._file = unlocked.open("ab", buffering=0)
        fcntl.flock(self._file, fcntl.LOCK_EX)
        unlocked.rename(work / _NAME)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def will_make(self, folder: Path) -> None:
        self._note(folder, None, None)

    def will_move(self, target: Path, old: Path, new: Path | None = None) -> None:
        """What is at `target`, if anything, is to be `old`; what is `new` then comes there."""
        self._note(target, old.name, None if new is None else _identity(new))

    def _note(self, target: Path, old: str | None, placed: Sequence[int] | None) -> None:
        step = _Step(str(target.relative_to(self._home)), old, placed)
        line = json.dumps(step).encode() + b"\n"
        if self._file.write(line) != len(line):
            raise OSError(errno.ENOSPC, "the journal cannot be written")
        self._steps.append(step)

    def done(self) -> None:
        (self._work / _NAME).unlink()

    def undo(self) -> bool:
        """Whether all was taken back; if not, the work folder holds what nothing else does."""
        return _undo(self._steps, self._work, self._home)


def has_journal(work: Path) -> bool:
    return (work / _NAME).exists()


def recover(work: Path, home: Path) -> bool:
    """Take back what a process that is dead has left; whether the work folder has served."""
    journal = work / _NAME
    lock = lock_file(journal)
    if lock is None:
        return False
    try:
        return _undo(_steps(journal.read_bytes()), work, home)
    finally:
        os.close(lock)


def _steps(written: bytes) -> list[_Step]:
    # A line without an end was cut, and its step not begun.
    return [_Step(*json.loads(line)) for line in written.split(b"\n")[:-1]]


def _undo(steps: Sequence[_Step], work: Path, home: Path) -> bool:
    good = True
    for step in reversed(steps):
        try:
            _take_back(step, work, home)
        except OSError as error:
            good = False
            _log.error("%s: cannot take back %r: %s", work, step.target, error.strerror)
    return good


def _take_back(step: _Step, work: Path, home: Path) -> None:
    target = home / step.target
    if step.old is None:
        with suppress(FileNotFoundError):
            target.rmdir()
        return
    old = work / step.old
    there, before = _identity(target), _identity(old)
    # What somebody has put there since is newer than both.
    ours = there is None or there in (step.placed, before)
    if before is None:
        if there is not None and there == step.placed:
            target.unlink()
    elif ours and _brain_of(step, home).is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        old.replace(target)


def _brain_of(step: _Step, home: Path) -> Path:
    """Documents lie in `brains`, sidecars in `meta`, both below the name of the brain."""
    return home / "brains" / Path(step.target).parts[1]


def _identity(file: Path) -> list[int] | None:
    """The same under each of its names, and for no two files."""
    try:
        state = file.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return [state.st_ino, state.st_mtime_ns]
