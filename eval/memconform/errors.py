"""Exit codes, and the errors that state what failed, why, and what to try."""

import difflib
from collections.abc import Iterable
from enum import IntEnum

from memconform.printing.escaping import Lines, indent, printable


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

    def render(self) -> Lines:
        """Format the error for a user: redacted and escaped, on as many lines as it needs."""
        lines = [printable(f"{self.code}: {self.message}")]
        lines += [indent(self.excerpt.rstrip(), "  | ")] if self.excerpt.strip() else []
        lines += [printable(f"  try: {self.hint}")] if self.hint else []
        return Lines("\n".join(lines))


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
    matches = difflib.get_close_matches(name, names, n=1, cutoff=cutoff)
    return f"did you mean {matches[0]!r}?" if matches else ""
