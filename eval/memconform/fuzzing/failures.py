"""The ways in which a daemon fails to answer while it is fuzzed."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import httpx

_DEATH_SECONDS = 2.0
"""How long to wait, after a broken connection, for the report that the process has ended."""
_POLL_SECONDS = 0.02

FailureKind = Literal[
    "process ended",
    "connection reset",
    "connection refused",
    "timeout",
    "broken",
    "endless",
    "unexpected answer",
]
"""A `connection reset` has no byte of a response, and the process lives on; a `broken` response
ends too early or is no HTTP; an `endless` one does not end in time; an `unexpected answer` to a
request of the harness itself ends the search."""


def still_running() -> str:
    """The exit status of a process that is not watched: none."""
    return ""


@dataclass(frozen=True, slots=True)
class FuzzTarget:
    """A daemon to send requests to."""

    address: str
    exit_status: Callable[[], str] = still_running
    """How its process ended, such as `exit status 3`; empty while it runs or is not watched."""
    restart: Callable[[str], str] | None = None
    """Restart the daemon by `restart` or `kill`; returns why that failed, or an empty text. None if
    the harness must not."""

    @property
    def is_watched(self) -> bool:
        """Whether the end of its process would be noticed."""
        return self.exit_status is not still_running


class BrainLostError(Exception):
    """A daemon did not create or delete a brain, so its answers cannot be compared."""

    def __init__(self, request: str, kind: FailureKind, detail: str = "", sdk: str = "") -> None:
        name, cause = f"{sdk}: " * bool(sdk), f" ({detail})" * bool(detail)
        super().__init__(f"{name}{request}: {kind}{cause}")
        self.request = request
        self.kind: FailureKind = kind
        self.detail = detail

    def of(self, sdk: str) -> "BrainLostError":
        """The same error, naming its SDK."""
        return BrainLostError(self.request, self.kind, self.detail, sdk)


def failure_of(error: httpx.HTTPError, target: FuzzTarget) -> tuple[FailureKind, str]:
    """Classify the failure of a call; return its kind and a detail, such as the exit status."""
    if isinstance(error, httpx.TimeoutException):
        return "timeout", ""
    if status := _exit_status(target):
        return "process ended", status
    if isinstance(error, httpx.ConnectError):
        return "connection refused", str(error)
    no_byte = isinstance(error, httpx.ReadError | httpx.WriteError)
    # httpx has no class of its own for a connection that was closed instead of answered.
    if no_byte or "without sending a response" in str(error):
        return "connection reset", "the process lives" if target.is_watched else ""
    return "broken", str(error)


def _exit_status(target: FuzzTarget) -> str:
    """The exit status, waiting a moment for it: a connection breaks before it is known."""
    deadline = time.monotonic() + _DEATH_SECONDS
    while not (status := target.exit_status()) and target.is_watched:
        if time.monotonic() > deadline:
            return ""
        time.sleep(_POLL_SECONDS)
    return status
