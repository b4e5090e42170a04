"""Undoing the changes of daemons that no longer run, whichever SDK they were of."""

import logging
import os
import shutil
from contextlib import closing
from pathlib import Path

from memoryd.files.journal import NAME, JournalError, read_steps
from memoryd.files.lock import lock_database
from memoryd.files.regular import is_folder
from memoryd.files.undo import undo

_log = logging.getLogger(__name__)


def recover(staging: Path) -> None:
    """Undo and remove what daemons left in `staging` that no longer run.

    A change that cannot be undone stays, for the next start; the log names its folder.
    """
    for folder in sorted(filter(is_folder, staging.iterdir())):
        try:
            lock = lock_database(folder / "lock")
            if lock is None:
                continue
            with closing(lock):
                _recover_daemon(folder, staging.parent)
        except OSError as error:
            _log.error("%s: cannot undo the changes of a daemon: %s", folder, error)


def _recover_daemon(folder: Path, home: Path) -> None:
    complete = True
    if os.path.lexists(folder / NAME):
        _log.error("%s: a change of another format is left as it is", folder)
        complete = False
    for change in filter(is_folder, folder.iterdir()) if complete else ():
        if not os.path.lexists(change / NAME):
            continue
        try:
            undone = undo(read_steps(change), change, home)
        except (JournalError, OSError) as error:
            _log.error("%s: the journal cannot be read: %s", change, error)
            undone = False
        if undone:
            # The journal goes first, so that a folder that is half removed is never undone.
            (change / NAME).unlink()
            shutil.rmtree(change, ignore_errors=True)
        complete = complete and undone
    if complete:
        shutil.rmtree(folder, ignore_errors=True)
