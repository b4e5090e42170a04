"""Records the requests of daemons, so that a test can query them."""

import json
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import takewhile
from typing import Literal

from memconform.upstream.script import Kind

ExchangeOutcome = Literal["open", "answered", "broken", "client_gone", "refused"]
"""`broken` is an answer that a fault of the script has broken."""

_MAX_RECORDS = 10_000
MAX_KEPT_BYTES = 128 << 20
"""Bytes of bodies, paths and headers. Embedding the 105,591 turns of WMB-100K sends 30 MB."""
_SECRET_HEADERS = ("authorization", "x-api-key", "api-key")


@dataclass(slots=True)
class RecordedRequest:
    """A request to the upstream, and what became of its answer."""

    number: int
    kind: Kind
    path: str
    headers: dict[str, str]
    """Names in lower case; of secrets the scheme only."""
    body: bytes
    """As JSON text: parsed values would take about ten times the memory."""
    at_ms: float
    """Milliseconds since the upstream started."""
    outcome: ExchangeOutcome = "open"
    pieces: int = 0
    """How many deltas of a stream were sent."""
    refusal: str = ""
    """Why the request was refused, if its content was the reason."""

    @property
    def size(self) -> int:
        """Bytes of body, path and headers, without the constant overhead of a record."""
        headers = sum(len(name) + len(value) for name, value in self.headers.items())
        return len(self.body) + len(self.path) + headers

    def dump(self) -> bytes:
        """Encode the record as one JSON object in UTF-8; `body` is inserted unchanged."""
        values = asdict(self)
        del values["body"]
        return json.dumps(values)[:-1].encode() + b', "body": ' + self.body + b"}"


@dataclass(slots=True)
class RequestCounts:
    """How many requests arrived, including those whose records were dropped."""

    chat: int = 0
    embeddings: int = 0
    rerank: int = 0
    answers: int = 0
    """Chats that ask for an answer, neither for scores, a verdict nor facts."""
    stand_ins: int = 0
    """Chats that were answered by fixed rules in place of a model (`schema_filler`)."""
    refused: int = 0
    """Chats whose prompt the reader cannot read."""
    last_refusal: str = ""

    def add(self, kind: Kind) -> None:
        """Count a request."""
        setattr(self, kind, getattr(self, kind) + 1)

    def refuse(self, reason: str) -> None:
        """Count a chat that the reader refused."""
        self.refused += 1
        self.last_refusal = reason

    def dump(self) -> dict[str, int | str]:
        """Encode the counts as a JSON object."""
        return asdict(self)


class Records:
    """The most recent requests: at most `_MAX_RECORDS`, and `MAX_KEPT_BYTES` in total."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._count = 0
        self._bytes = 0
        self._records: deque[RecordedRequest] = deque()
        self.counts = RequestCounts()

    def add(
        self, kind: Kind, path: str, headers: Mapping[str, str], body: bytes
    ) -> RecordedRequest:
        """Append a request; `body` is its JSON text."""
        self._count += 1
        self.counts.add(kind)
        recorded = RecordedRequest(
            number=self._count,
            kind=kind,
            path=path,
            headers={name: _masked(name, value) for name, value in headers.items()},
            body=body,
            at_ms=round((time.monotonic() - self._started) * 1e3, 3),
        )
        self._records.append(recorded)
        self._bytes += recorded.size
        while len(self._records) > _MAX_RECORDS or self._bytes > MAX_KEPT_BYTES:
            self._bytes -= self._records.popleft().size
        return recorded

    def clear(self) -> None:
        self._records.clear()
        self._bytes = 0
        self._count = 0
        self.counts = RequestCounts()

    def dump(self, after: int = 0) -> bytes:
        """The requests numbered above `after`, and how many were dropped, as JSON."""
        newer = takewhile(lambda recorded: recorded.number > after, reversed(self._records))
        dumped = b", ".join([recorded.dump() for recorded in newer][::-1])
        return b'{"dropped": %d, "requests": [%s]}' % (self._count - len(self._records), dumped)


def _masked(name: str, value: str) -> str:
    if name not in _SECRET_HEADERS:
        return value
    scheme, space, _ = value.rpartition(" ")
    return f"{scheme}{space}***"
