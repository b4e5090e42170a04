"""What is really a file or a folder: no link is followed, and no pipe waited for."""

import errno
import os
import stat
from pathlib import Path


def read_regular(file: Path) -> bytes | None:
    """The content of a regular file.

    None for anything else, as if nothing were there: a link, say, or a pipe, whose reader would
    wait for its writer.
    """
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        # A link, a socket.
        if error.errno in (errno.ELOOP, errno.ENXIO):
            return None
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return None
    with os.fdopen(handle, "rb") as content:
        return content.read()


def is_regular(path: Path) -> bool:
    """Whether a path is a regular file, and no link to one."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
