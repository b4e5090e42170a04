"""What daemons sent, kept so that a test can ask for it."""

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import takewhile
from typing import Any, Literal

from memconform.upstream.script import Kind

Outcome = Literal["open", "answered", "broken", "client_gone", "refused"]
"""`broken` is what a script's fault has made of an answer."""

_KEPT = 10_000
_SECRET = ("authorization", "x-api-key", "api-key")


@dataclass(slots=True)
class Recorded:
    number: int
    kind: Kind
    path: str
    headers: dict[str, str]
    """Lower-case names; of secrets only how they begin."""
    body: dict[str, Any]
    at_ms: float
    """Since the upstream began."""
    outcome: Outcome = "open"
    pieces: int = 0
    """Deltas of a stream that were sent."""


class Records:
    """The last `_KEPT` requests."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._count = 0
        self._kept: deque[Recorded] = deque(maxlen=_KEPT)

    def add(
        self, kind: Kind, path: str, headers: Mapping[str, str], body: dict[str, Any]
    ) -> Recorded:
        self._count += 1
        recorded = Recorded(
            number=self._count,
            kind=kind,
            path=path,
            headers={name: _masked(name, value) for name, value in headers.items()},
            body=body,
            at_ms=round((time.monotonic() - self._started) * 1e3, 3),
        )
        self._kept.append(recorded)
        return recorded

    def clear(self) -> None:
        self._kept.clear()
        self._count = 0

    def dump(self, after: int = 0) -> dict[str, Any]:
        """Those whose number is greater than `after`."""
        newer = takewhile(lambda recorded: recorded.number > after, reversed(self._kept))
        return {
            "dropped": self._count - len(self._kept),
            "requests": [asdict(recorded) for recorded in newer][::-1],
        }


def _masked(name: str, value: str) -> str:
    if name not in _SECRET:
        return value
    scheme, space, _ = value.rpartition(" ")
    return f"{scheme}{space}***"
