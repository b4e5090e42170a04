"""Exit codes, and the errors that state what failed, why, and what to try."""

import errno
import os
import re
import resource
from collections.abc import Iterable
from enum import IntEnum


class ExitCode(IntEnum):
    """Exit status of a command. `FAILED` is reserved for a measured verdict."""

    OK = 0
    FAILED = 1
    USAGE = 2
    DAEMON = 3
    NOTHING_SELECTED = 4
    INCONCLUSIVE = 5
    BUDGET = 6
    INTERNAL = 70
    INTERRUPTED = 130


_PRECEDENCE = (
    ExitCode.INTERRUPTED,
    ExitCode.USAGE,
    ExitCode.INTERNAL,
    ExitCode.DAEMON,
    ExitCode.BUDGET,
    ExitCode.NOTHING_SELECTED,
    ExitCode.FAILED,
    ExitCode.INCONCLUSIVE,
    ExitCode.OK,
)


def gravest(codes: Iterable[ExitCode]) -> ExitCode:
    """Return the code with the highest precedence; OK if there are none."""
    return min(codes, key=_PRECEDENCE.index, default=ExitCode.OK)


class MemconformError(Exception):
    """A failure that a user can act on.

    `code` is stable and machine-readable, `hint` says what to try, and `excerpt` holds the lines
    that show the cause, such as the tail of a log or the body of a response.
    """

    exit_code = ExitCode.INTERNAL

    def __init__(self, message: str, *, code: str, hint: str = "", excerpt: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.hint = hint
        self.excerpt = excerpt


class UsageError(MemconformError):
    """The command line, a dataset or a manifest is invalid."""

    exit_code = ExitCode.USAGE


class NothingSelectedError(MemconformError):
    """A selection matches nothing, so there is nothing to run or to show."""

    exit_code = ExitCode.NOTHING_SELECTED


class DaemonError(MemconformError):
    """A daemon could not be built, started or seeded, or it died."""

    exit_code = ExitCode.DAEMON


class ResultsError(MemconformError):
    """Results could not be written, or not be read again."""


_LIMITS = {
    errno.EMFILE: ("too_many_files", "raise the limit (`ulimit -n 4096`), or lower --concurrency"),
    errno.ENFILE: ("too_many_files", "close other programs: the whole machine has no file left"),
    # Of fork and of a new thread; a socket's EAGAIN never leaves the code that reads it.
    errno.EAGAIN: ("too_many_processes", "raise the limit with `ulimit -u`, or end other programs"),
    errno.ENOMEM: ("out_of_memory", "end other programs, or raise the limit (`ulimit -v`)"),
    errno.ENOSPC: ("disk_full", "free space, or set TMPDIR to a folder on another disk"),
    errno.EDQUOT: ("disk_full", "free space, or set TMPDIR to a folder on another disk"),
    errno.EFBIG: ("disk_full", "raise the limit of a file's size (`ulimit -f`)"),
}
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NO_TEMPORARY = "No usable temporary directory"
"""How Python's tempfile says it, as if a file was missing."""
_NO_THREAD = "can't start new thread"
_NO_MEMORY = re.compile(
    "failed to map segment|Cannot allocate memory|unable to allocate", re.IGNORECASE
)
"""How the dynamic linker and numpy say it."""
_FEWEST_FILES = 64
"""With less, libraries fail in ways of their own: charts as `oneshot canceled`, at 12."""
_OF_LIBRARIES = re.compile(r"[Oo]s \{ code: (\d+),|\[Errno (\d+)\]")
"""How libraries of other languages write an error number into a message."""


def limit_error(error: BaseException) -> UsageError | None:
    """The sentence for an error that a limit of the machine caused; None for any other.

    The cause and the context of `error` are looked at as well, because libraries wrap errors.
    """
    if _NO_TEMPORARY in str(error):
        return UsageError(
            "no folder for temporary files can be written",
            code="folder_unwritable",
            hint="set TMPDIR to a folder that can be written, or raise `ulimit -f`",
        )
    number = None
    place = ""
    cause: BaseException | None = error
    while cause is not None and number is None:
        if isinstance(cause, OSError):
            number = cause.errno
            place = f" for {cause.filename}" if number in _DISK and cause.filename else ""
        elif isinstance(cause, MemoryError):
            number = errno.ENOMEM
        elif _NO_THREAD in str(cause):
            number = errno.EAGAIN
        elif _NO_MEMORY.search(str(cause)):
            number = errno.ENOMEM
        elif match := _OF_LIBRARIES.search(str(cause)):
            number = int(match[1] or match[2])
        cause = cause.__cause__ or cause.__context__
    excerpt = ""
    if number is None and resource.getrlimit(resource.RLIMIT_NOFILE)[0] < _FEWEST_FILES:
        # It may have another cause, so what it said is shown.
        number, excerpt = errno.EMFILE, f"{type(error).__name__}: {error}"
    if number not in _LIMITS:
        return None
    code, hint = _LIMITS[number]
    message = f"this machine allows no more{place}: {os.strerror(number)}"
    return UsageError(message, code=code, hint=hint, excerpt=excerpt)


def limit_hint(reason: str) -> str:
    """What to try if a reason that another process reports is such an error; otherwise nothing."""
    hints = [hint for number, (_, hint) in _LIMITS.items() if os.strerror(number) in reason]
    return hints[0] if hints else ""


def missing_extra(extra: str, message: str) -> UsageError:
    """Build the error for an optional dependency (an extra) that is not installed."""
    return UsageError(message, code="extra_missing", hint=f"pip install 'memconform[{extra}]'")


_SHORT_NAME = 3


def nearest(name: str, known: Iterable[str]) -> str:
    """Return `did you mean …?` for a misspelt name, or an empty string if no name is close."""
    names = list(known)
    # A beginning is no misspelling: longmemeval_s is closer to longmemeval_oracle than to
    # longmemeval_s_cleaned, by their letters.
    longer = [each for each in names if len(name) >= _SHORT_NAME and each.startswith(name)]
    if longer:
        return f"did you mean {min(longer, key=len)!r}?"
    # One wrong letter of two is half the name. In longer names, half the letters in common is no
    # misspelling: it would suggest 'computing' for 'nothing' (0.63).
    cutoff = 0.5 if len(name) <= _SHORT_NAME else 0.7
    import difflib  # noqa: PLC0415 - for mistakes alone: every verb imports this module

    matches = difflib.get_close_matches(name, names, n=1, cutoff=cutoff)
    return f"did you mean {matches[0]!r}?" if matches else ""
