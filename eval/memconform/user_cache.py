"""The folder for what can be made again: embedding vectors, and replies of language models.

And the mode in which processes share a database, there or elsewhere.
"""

import os
import sqlite3
import time
from pathlib import Path

from platformdirs import user_cache_path


def cache_folder() -> Path:
    """`$MEMCONFORM_CACHE`, or else the folder for memconform in the user's cache folder.

    Builds of SDKs are not kept there but follow XDG_CACHE_HOME alone, so that a command with a
    cache of its own need not build them again.
    """
    named = os.environ.get("MEMCONFORM_CACHE")
    return Path(named) if named else user_cache_path("memconform")


_PAUSE_SECONDS = 0.02


def use_write_ahead_log(db: sqlite3.Connection, seconds: float) -> None:
    """Switch a database that processes share to write-ahead logging, waiting for the others.

    SQLite does not wait for a lock when it changes the journal mode, whatever its timeout: of three
    processes that began together, one ended with `database is locked`.

    Raises:
        sqlite3.Error: if it is still locked after so many seconds, or cannot be used.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE_SECONDS)
        else:
            return
