"""Limits of a machine that daemons and their connections need: files, disk, memory."""

import re
import resource
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from memconform.errors import DaemonError, MemconformError, UsageError

OTHER_FILES = 32
"""Files of the harness or a daemon besides connections: streams, pipes, journals, a database."""
DISK_BYTES = 32 << 20
"""What the state of a daemon takes while it is checked, a few times over; with 3 MB all checks
passed, and with 1 MB some failed as if the daemon was wrong. The build of `go` takes 28 MB."""
_FILE_BYTES = 16 << 20
"""Size of one file: with 64 KiB no daemon could write its database, and with 4 MiB the record of a
response was cut."""
MEMORY_BYTES = 384 << 20
"""Address space of the smallest reference daemon, in Python: with 400 MB its searches worked, with
200 MB they failed. Those in Go and TypeScript need more, so more is no reason to refuse."""
ALL_MEMORY_BYTES = 1400 << 20
"""Address space with which all reference daemons worked: with 1,300 MB the one in Go ended in 3 of
3 tries and with 1,400 MB in none; the one in TypeScript ended with 1,000 MB."""
_CAUSED = frozenset(
    (
        *("daemon_exited", "daemon_died", "daemon_not_ready", "no_version", "seed_failed"),
        *("brain_changed", "index_incomplete", "not_searchable", "connection_broken"),
        "unreachable",
    )
)
"""Codes that a full disk or too little memory can cause, beside answers of 500 and above."""
_SHOWN = {
    "disk_full": re.compile(r"no space left|disk is full|ENOSPC|quota exceeded", re.IGNORECASE),
    "out_of_memory": re.compile(
        r"out of memory|allocate memory|bad_alloc|process OOM|MemoryError|ENOMEM", re.IGNORECASE
    ),
}
"""How programs say what they lacked."""


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
    _require_disk_and_memory(folder, MEMORY_BYTES)
    allow_files(connections, flag="")


def explained(error: MemconformError, folder: Path, *, managed: bool) -> MemconformError:
    """The error of a daemon with what this machine lacks, if that is a likely cause.

    A daemon says of a full disk that it failed, and of too little memory nothing. Looked at after
    the failure, because with as little many a run works. The code changes only if the daemon's own
    words show the lack: a wrong flag also ends a daemon, whatever the machine lacks.

    Args:
        error: what ended the measurements.
        folder: where the daemon kept its state.
        managed: whether memconform started the daemon, so that the limits are also its own.
    """
    if not (managed and isinstance(error, DaemonError) and _can_be_caused(error.code)):
        return error
    try:
        _require_disk_and_memory(folder, ALL_MEMORY_BYTES)
    except UsageError as lack:
        hint = f"the likely cause: {lack.message}: {lack.hint}"
        hint += f"; or else {error.hint}" if error.hint else ""
        code, message = error.code, error.message
        if is_shown(lack.code, f"{message}\n{error.excerpt}"):
            code, message = lack.code, f"{error.code}: {message}"
        return DaemonError(message, code=code, hint=hint, excerpt=error.excerpt)
    return error


def _can_be_caused(code: str) -> bool:
    return code in _CAUSED or code.startswith("http_5")


def is_shown(lack: str, output: str) -> bool:
    """Whether the output of a program shows a lack: `disk_full` or `out_of_memory`."""
    return _SHOWN[lack].search(output) is not None


def _require_disk_and_memory(folder: Path, memory: int) -> None:
    free = shutil.disk_usage(nearest_existing(folder)).free
    if free < DISK_BYTES:
        raise UsageError(
            f"{free >> 20} MiB are free at {folder}, and daemons need {DISK_BYTES >> 20}",
            code="disk_full",
            hint="free space, or name another folder by --output",
        )
    require_file_size()
    require_memory(memory)


def require_memory(memory: int) -> None:
    """Refuse a limit of the address space below so many bytes.

    Raises:
        UsageError: `out_of_memory`.
    """
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY and limit < memory:
        raise UsageError(
            f"{limit >> 20} MiB of memory are allowed, and some daemons need {memory >> 20}",
            code="out_of_memory",
            hint="raise the limit (`ulimit -v unlimited`)",
        )


def require_file_size() -> None:
    """Refuse a limit of file sizes with which no daemon can write its index.

    Raises:
        UsageError: `disk_full`.
    """
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if limit != resource.RLIM_INFINITY and limit < _FILE_BYTES:
        raise UsageError(
            f"a file may have {limit >> 10:,} KiB, and daemons need {_FILE_BYTES >> 10:,} KiB",
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
