"""Temporary folders that are gone when the program has ended."""

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """Make a folder, and remove it with all that it contains when the block is left."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        yield folder
    finally:
        remove_folder(folder)


def remove_folder(folder: Path) -> None:
    """Remove a folder: now, or else when the program ends.

    Removal opens files. An error that is just passing through because no more could be opened
    (`ulimit -n 8`) still holds some, and the folder would stay.
    """
    _remove(folder)
    if folder.exists():
        atexit.register(_remove, folder)


def _remove(folder: Path) -> None:
    """Remove a folder as far as possible, also what lies in folders that may not be changed."""
    shutil.rmtree(folder, ignore_errors=True)
    # From the top, so that each folder can be listed when it is reached. Nothing is left if the
    # removal succeeded. A link leads elsewhere, and its target would change.
    for parent, names, _ in os.walk(folder):
        for path in (Path(parent), *(Path(parent, name) for name in names)):
            if not path.is_symlink():
                with suppress(OSError):
                    path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)
