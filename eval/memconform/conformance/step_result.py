"""What a step brought: the answer, the stream so far, or what a process or file is like."""

import json
from dataclasses import dataclass, field
from typing import Any, Literal

from memconform.client.recorder import Exchange
from memconform.conformance.pointer import MISSING
from memconform.contract.wire import JsonValue

Ended = Literal["end", "cut", "open"]


@dataclass(frozen=True, slots=True)
class Event:
    """One of a stream; `at_ms` since the request was sent."""

    name: str
    data: str
    id: str
    at_ms: float

    def value(self) -> JsonValue:
        """The data as JSON, or as it is where it is none."""
        try:
            return json.loads(self.data)
        except (ValueError, RecursionError):
            return self.data


@dataclass(slots=True)
class StepResult:
    what: str
    """`POST /v1/brains`, for a report."""
    status: int | None = None
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    events: list[Event] = field(default_factory=list)
    ended: Ended | None = None
    took_ms: float = 0.0
    failure: str | None = None
    """Why nothing, or not all, came."""
    exchange: Exchange | None = None
    shell: str = ""
    """A command that does the same, where there is no exchange that knows one."""
    value: Any = MISSING
    """JSON that did not come as a body."""
    statuses: list[int | None] = field(default_factory=list)
    """Of all answers on one connection; None where none came."""

    def header(self, name: str) -> JsonValue:
        """All values of a header, joined as RFC 9110 has it; MISSING where there is none."""
        found = [value for key, value in self.headers if key.lower() == name.lower()]
        return ", ".join(found) if found else MISSING

    def json(self) -> JsonValue:
        """The body as JSON, of a stream its events; MISSING where it is none."""
        if self.value is not MISSING:
            return self.value
        if self.events:
            told = [{"event": e.name, "id": e.id, "data": e.value()} for e in self.events]
            return {"events": told}
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return MISSING

    def curl(self) -> str:
        """A command that repeats what was sent."""
        return self.exchange.curl() if self.exchange is not None else self.shell
