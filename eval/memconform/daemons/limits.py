"""Limits of a machine that daemons and their connections need: files, disk, memory."""

import resource
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from memconform.errors import DaemonError, MemconformError, UsageError

OTHER_FILES = 32
"""Files of the harness or a daemon besides connections: streams, pipes, journals, a database."""
_DISK_BYTES = 32 << 20
"""What the state of a daemon takes while it is checked, a few times over; with 3 MB all checks
passed, and with 1 MB some failed as if the daemon was wrong."""
_FILE_BYTES = 16 << 20
"""Size of one file: with 64 KiB no daemon could write its database, and with 4 MiB the record of a
response was cut."""
_MEMORY_BYTES = 384 << 20
"""Address space of the smallest daemon: with 400 MB all worked, with 200 MB searches failed."""
_FAILED_MEMORY_BYTES = 1000 << 20
"""Enough for the largest reference daemon: with 500 MB those in Go and TypeScript ended before they
were ready; with 1,000 MB all worked."""


def nearest_existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists.

    Below a folder that cannot be searched, asking whether something exists is an error.
    """
    for each in (folder, *folder.absolute().parents):
        with suppress(OSError):
            if each.exists():
                return each
    return Path("/")


def why_unwritable(folder: Path) -> OSError | None:
    """Why no file can be made in a folder; a permission says less than an attempt."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return None
    except OSError as error:
        return error


def require_room(folder: Path, connections: int) -> None:
    """Refuse a machine on which a correct daemon would fail checks.

    Args:
        folder: where daemons keep their state.
        connections: to one daemon at a time.

    Raises:
        UsageError: `disk_full`, `out_of_memory` or `too_few_files`.
    """
    _require_disk_and_memory(folder, _MEMORY_BYTES)
    allow_files(connections, flag="")


def explained(error: MemconformError, folder: Path) -> MemconformError:
    """The error of a daemon, or what this machine lacks if that is the likely cause.

    A daemon says of a full disk that it failed, and of too little memory nothing. Looked at after
    the failure, because with as little many a run works.

    Args:
        error: what ended the measurements.
        folder: where the daemon kept its state.
    """
    if not isinstance(error, DaemonError):
        return error
    try:
        _require_disk_and_memory(folder, _FAILED_MEMORY_BYTES)
    except UsageError as lack:
        message = f"{lack.message}; that is the likely cause of {error.code}: {error.message}"
        return DaemonError(message, code=lack.code, hint=lack.hint, excerpt=error.excerpt)
    return error


def _require_disk_and_memory(folder: Path, memory: int) -> None:
    free = shutil.disk_usage(nearest_existing(folder)).free
    if free < _DISK_BYTES:
        raise UsageError(
            f"{free >> 20} MiB are free at {folder}, and daemons need {_DISK_BYTES >> 20}",
            code="disk_full",
            hint="free space, or name another folder by --output",
        )
    _require_file_size()
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY and limit < memory:
        raise UsageError(
            f"{limit >> 20} MiB of memory are allowed, and a daemon needs {memory >> 20}",
            code="out_of_memory",
            hint="raise the limit (`ulimit -v unlimited`)",
        )


def _require_file_size() -> None:
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if limit != resource.RLIM_INFINITY and limit < _FILE_BYTES:
        raise UsageError(
            f"a file may have {limit >> 10:,} KiB, and daemons need {_FILE_BYTES >> 10:,}",
            code="disk_full",
            hint="raise the limit (`ulimit -f unlimited`)",
        )


def allow_files(connections: int, *, flag: str = "--concurrency") -> None:
    """Raise the soft limit of open files to what so many connections need, if it is lower.

    Daemons inherit it, and each has the other ends of the connections. `flag` sets their number;
    empty if none does.

    Raises:
        UsageError: `too_few_files` if the hard limit is lower.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = connections + OTHER_FILES
    if soft == resource.RLIM_INFINITY or needed <= soft:
        return
    if hard != resource.RLIM_INFINITY and needed > hard:
        fewer = hard - OTHER_FILES
        hint = f"raise the limit with `ulimit -n {needed}`"
        raise UsageError(
            f"{connections} requests at a time need {needed} open files, and {hard} are allowed",
            code="too_few_files",
            hint=f"{hint}, or use {flag} {fewer}" if flag and fewer > 0 else hint,
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
