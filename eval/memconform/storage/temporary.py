"""Temporary folders that are gone when the program has ended."""

import atexit
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
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
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
