"""What daemons sent, kept so that a test can ask for it."""

import json
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import takewhile
from typing import Literal

from memconform.upstream.script import Kind

ExchangeOutcome = Literal["open", "answered", "broken", "client_gone", "refused"]
"""`broken` is what a script's fault has made of an answer."""

_KEPT = 10_000
MAX_KEPT_BYTES = 128 << 20
"""Of bodies, paths and headers: the 105,591 turns of WMB-100K are embedded in 30 MB."""
_SECRET = ("authorization", "x-api-key", "api-key")


@dataclass(slots=True)
class Recorded:
    number: int
    kind: Kind
    path: str
    headers: dict[str, str]
    """Lower-case names; of secrets only how they begin."""
    body: bytes
    """Its JSON: as values it would take some ten times the memory."""
    at_ms: float
    """Since the upstream began."""
    outcome: ExchangeOutcome = "open"
    pieces: int = 0
    """Deltas of a stream that were sent."""

    @property
    def size(self) -> int:
        """Bytes, but for what every record takes."""
        headers = sum(len(name) + len(value) for name, value in self.headers.items())
        return len(self.body) + len(self.path) + headers

    def dump(self) -> bytes:
        """The record as JSON."""
        values = asdict(self)
        del values["body"]
        return json.dumps(values)[:-1].encode() + b', "body": ' + self.body + b"}"


class Records:
    """The last `_KEPT` requests, or fewer that have `MAX_KEPT_BYTES` together."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._count = 0
        self._bytes = 0
        self._kept: deque[Recorded] = deque()

    def add(self, kind: Kind, path: str, headers: Mapping[str, str], body: bytes) -> Recorded:
        """Record a request whose body is this JSON."""
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
        self._bytes += recorded.size
        while len(self._kept) > _KEPT or self._bytes > MAX_KEPT_BYTES:
            self._bytes -= self._kept.popleft().size
        return recorded

    def clear(self) -> None:
        self._kept.clear()
        self._bytes = 0
        self._count = 0

    def dump(self, after: int = 0) -> bytes:
        """Those whose number is greater than `after`, and how many are no longer kept, as JSON."""
        newer = takewhile(lambda recorded: recorded.number > after, reversed(self._kept))
        dumped = b", ".join([recorded.dump() for recorded in newer][::-1])
        return b'{"dropped": %d, "requests": [%s]}' % (self._count - len(self._kept), dumped)


def _masked(name: str, value: str) -> str:
    if name not in _SECRET:
        return value
    scheme, space, _ = value.rpartition(" ")
    return f"{scheme}{space}***"
