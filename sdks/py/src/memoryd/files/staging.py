"""The staging folder: where changes are prepared, and what a killed daemon leaves behind."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from memoryd.files.journal import NAME
from memoryd.files.lock import lock_database
from memoryd.files.recovery import recover

_WAIT_S = 60.0
"""How long to wait for another daemon that starts, or creates or deletes a brain."""


class Staging:
    """This daemon's folder below `$JB_HOME/staging`, which it locks for as long as it runs."""

    def __init__(self, home: Path) -> None:
        """Undo what killed daemons left, and take a folder.

        Raises:
            OSError: if the folder cannot be created, or another daemon does not finish its start.
        """
        self.home = home
        self._root = home / "staging"
        with self.exclusive():
            recover(self._root)
            self._folder = Path(tempfile.mkdtemp(prefix="py-", dir=self._root))
            lock = lock_database(self._folder / "lock")
            if lock is None:
                raise BlockingIOError(f"{self._folder}: locked by another daemon")
            self._lock = lock

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Be the only daemon that starts, or creates or deletes a brain."""
        lock = lock_database(self._root / "lock", wait_s=_WAIT_S)
        if lock is None:
            raise TimeoutError(
                f"{self._root}: another daemon has held the lock for {_WAIT_S:.0f} s"
            )
        with closing(lock):
            yield

    def recover(self) -> None:
        """Undo what daemons left that were killed since; call it with `exclusive`."""
        recover(self._root)

    def new_folder(self) -> Path:
        """A folder for one change, or for files to be deleted. It goes with the daemon."""
        return Path(tempfile.mkdtemp(dir=self._folder))

    def close(self) -> None:
        """Remove the folder, unless it holds a change that could not be undone."""
        if not any(self._folder.glob(f"*/{NAME}")):
            shutil.rmtree(self._folder, ignore_errors=True)
        self._lock.close()
