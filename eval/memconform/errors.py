"""Exit codes, and errors that say what failed, why, and what to try."""

import difflib
from collections.abc import Iterable
from enum import IntEnum

from memconform.printing.escaping import Lines, indent, printable


class ExitCode(IntEnum):
    """What a command ends with. Only a measured verdict is `FAILED`."""

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
    """The code that a command ends with when several apply; OK when none does."""
    return min(codes, key=_PRECEDENCE.index, default=ExitCode.OK)


class MemconformError(Exception):
    """A failure that a user can act on.

    `code` is stable and machine-readable, `hint` says what to try, `excerpt` holds the lines that
    show the cause (the tail of a log, the body of an answer).
    """

    exit_code = ExitCode.INTERNAL

    def __init__(self, message: str, *, code: str, hint: str = "", excerpt: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.hint = hint
        self.excerpt = excerpt

    def render(self) -> Lines:
        """The error as a user reads it, over as many lines as it needs, safe to be shown."""
        lines = [printable(f"{self.code}: {self.message}")]
        lines += [indent(self.excerpt.rstrip(), "  | ")] if self.excerpt.strip() else []
        lines += [printable(f"  try: {self.hint}")] if self.hint else []
        return Lines("\n".join(lines))


class UsageError(MemconformError):
    """The command line, a dataset or a manifest cannot be used as it is."""

    exit_code = ExitCode.USAGE


class NothingSelectedError(MemconformError):
    exit_code = ExitCode.NOTHING_SELECTED


class DaemonError(MemconformError):
    """A daemon could not be built, started, filled or kept alive."""

    exit_code = ExitCode.DAEMON


class ResultsError(MemconformError):
    """Results could not be written or read back."""


def missing_extra(extra: str, message: str) -> UsageError:
    """That something is an extra and not installed; how to install it is said here alone."""
    return UsageError(message, code="extra_missing", hint=f"pip install 'memconform[{extra}]'")


def nearest(name: str, known: Iterable[str]) -> str:
    """`did you mean …?` for a misspelt name; empty where nothing is near."""
    matches = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"did you mean {matches[0]!r}?" if matches else ""
