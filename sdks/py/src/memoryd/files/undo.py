"""Undoing a change from its journal."""

import logging
import os
from collections.abc import Sequence
from pathlib import Path

from memoryd.files.journal import Step
from memoryd.files.path import folders_of
from memoryd.files.regular import is_folder, status
from memoryd.files.tree import Root

_log = logging.getLogger(__name__)


def undo(steps: Sequence[Step], change: Path, home: Path) -> bool:
    """Undo all steps, the last one first, even if some fail.

    It can be repeated, also after a kill. What was written later stays, and nothing of a brain that
    was deleted is brought back.

    Returns:
        Whether all are undone; if not, the change's folder may hold the only copy of files.
    """
    complete = True
    for step in reversed(steps):
        if not is_folder(home / "brains" / step.brain_id):
            continue
        try:
            if step.new is None:
                _put_back(home, step, change / step.old)
            else:
                _take_away(home, step, change / step.new, change / step.old)
        except OSError as error:
            complete = False
            _log.error("%s: cannot undo %r: %s", change, step.target, error.strerror)
    return complete


def _take_away(home: Path, step: Step, new: Path, old: Path) -> None:
    target = home / step.target
    if Root(home).obstacle(step.target) is not None:
        return
    current = identity(target)
    # Any other file was put there later.
    if current is not None and current == identity(new):
        if identity(old) is None:
            target.unlink()
        else:
            old.rename(target)
    if not os.path.lexists(target):
        remove_empty_above(home, step.target)


def _put_back(home: Path, step: Step, old: Path) -> None:
    target = home / step.target
    # A parent that is a file by now was written later.
    if not os.path.lexists(old) or Root(home).obstacle(step.target) is not None:
        return
    remove_empty_folders(target)
    if os.path.lexists(target):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    old.rename(target)


def remove_empty_above(home: Path, path: str) -> None:
    """Remove the folders above `path` that are empty, but not the brain's own folder."""
    for folder in reversed([*folders_of(path)][2:]):
        try:
            (home / folder).rmdir()
        except FileNotFoundError:
            continue
        except OSError:
            return


def remove_empty_folders(place: Path) -> None:
    """Remove `place` if it is a folder that contains nothing but empty folders."""
    folders = [place] if is_folder(place) else []
    for folder in folders:
        with os.scandir(folder) as entries:
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    return
                folders.append(Path(entry.path))
    for folder in reversed(folders):
        folder.rmdir()


def identity(file: Path) -> tuple[int, int] | None:
    """The same for every name of a file, and different for different files."""
    state = status(file)
    return None if state is None else (state.st_dev, state.st_ino)
