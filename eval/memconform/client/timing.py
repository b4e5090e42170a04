"""Time limits and measured timings of a call."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Time limits of a call, in seconds."""

    total: float = 120.0
    connect: float = 5.0
    first: float = 30.0
    """From sending the request to the first event of a stream, or to a plain response's headers."""
    gap: float = 30.0
    """Between two events of a stream, or two pieces of a plain response."""


@dataclass(frozen=True, slots=True)
class Timings:
    """Timings of a call, in milliseconds on the monotonic clock; None if the event never came.

    They start when the last byte of the request is handed to the kernel, so that neither waiting
    for a connection nor opening one is part of them. They end when this process has read the
    answer.
    """

    first_byte_ms: float
    done_ms: float
    first_event_ms: float | None = None
    first_delta_ms: float | None = None
