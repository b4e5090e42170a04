"""What is really a file or a folder: no link is followed, and no pipe waited for."""

import errno
import io
import os
import stat
from pathlib import Path


def read_regular(file: Path | str) -> bytes | None:
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


def status(path: Path | str) -> os.stat_result | None:
    """The `lstat` of a path; None if nothing is there."""
    try:
        return os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def is_regular(path: Path | str) -> bool:
    """Whether a path is a regular file, and no link to one."""
    state = status(path)
    return state is not None and stat.S_ISREG(state.st_mode)


def is_folder(path: Path | str) -> bool:
    state = status(path)
    return state is not None and stat.S_ISDIR(state.st_mode)


def write_whole(file: io.FileIO, content: bytes) -> None:
    """Write to an unbuffered file, which writes a part if the disk has no room for the rest."""
    if file.write(content) != len(content):
        raise OSError(errno.ENOSPC, f"{file.name}: no space left for all of it")
