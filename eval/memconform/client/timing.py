"""Time limits of a call, and what a call took."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds."""

    total: float = 120.0
    connect: float = 5.0
    first: float = 30.0
    """From sending to the first event of a stream, or to a plain answer's head."""
    gap: float = 30.0
    """Between two events of a stream, or two pieces of a plain answer."""


@dataclass(frozen=True, slots=True)
class Timings:
    """Milliseconds on the monotonic clock; None where it never came.

    They begin when the last byte of the request is handed to the kernel: neither the wait for a
    connection nor making one is part of them. They end when this process has read the answer.
    """

    first_byte_ms: float
    done_ms: float
    first_event_ms: float | None = None
    first_delta_ms: float | None = None
