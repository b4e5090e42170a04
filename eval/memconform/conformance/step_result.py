"""The result of a step: a response, the stream so far, or the state of a process or file."""

import json
import re
import shlex
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal, Self

from memconform.client.recorder import LONGEST_INLINE, Exchange, kept_file, printf
from memconform.conformance.pointer import MISSING
from memconform.contract.dialect import Dialect
from memconform.contract.wire import JsonValue

StreamEnd = Literal["end", "cut", "open"]


class ExactFloat(float):
    """A number of a response, with its exact value: JSON numbers are decimal."""

    exact: Decimal

    def __new__(cls, text: str) -> Self:
        """Parse a JSON number."""
        number = super().__new__(cls, text)
        number.exact = Decimal(text)
        return number


@dataclass(frozen=True, slots=True)
class Event:
    """A server-sent event; `at_ms` is the time since the request was sent, in milliseconds."""

    name: str
    data: str
    id: str
    at_ms: float
    received: tuple[str, str] | None = None
    """Name and data as they were received, if a dialect was translated."""

    @property
    def number(self) -> int | None:
        """The id as a number; None if it is not a decimal number."""
        return int(self.id) if re.fullmatch("[0-9]{1,40}", self.id) else None

    def value(self) -> JsonValue:
        """Return the data decoded as JSON, or unchanged if it is not JSON."""
        try:
            return json.loads(self.data, parse_float=ExactFloat)
        except (ValueError, RecursionError):
            return self.data


@dataclass(slots=True)
class StepResult:
    """What a step observed; a step that reads in the background keeps updating it."""

    label: str
    """Names the step in a report: `POST /v1/brains`, `disk: read x`."""
    status: int | None = None
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    """The response body, in the words of the contract."""
    received: bytes = b""
    """The response body as it was received, if it was read as a whole."""
    sent: bytes = b""
    """The request body, in the words of the contract, or the content of a file that was written."""
    dialect: Dialect | None = None
    """The daemon's dialect."""
    events: list[Event] = field(default_factory=list)
    ended: StreamEnd | None = None
    took_ms: float = 0.0
    failure: str | None = None
    """Why there is no response, or only part of one."""
    exchange: Exchange | None = None
    shell: str = ""
    """A shell command that repeats the step, for a step without an exchange."""
    pieces: bytes = b""
    """The standard input of that command."""
    cause: str = ""
    """Why checks of a step without a request fail, if they do; empty if it is not known."""
    value: Any = MISSING
    """A JSON result that is not a response body."""
    statuses: list[int | None] = field(default_factory=list)
    """Statuses of all responses on a raw connection; None for a missing response."""

    @property
    def is_unanswered(self) -> bool:
        """Whether a request got no response in time; a raw connection may stay open on purpose."""
        return self.exchange is not None and self.status is None and self.ended == "open"

    def header(self, name: str) -> JsonValue:
        """Return all values of a header, joined as in RFC 9110; MISSING if it is absent."""
        values = [value for key, value in self.headers if key.lower() == name.lower()]
        return ", ".join(values) if values else MISSING

    def json(self) -> JsonValue:
        """Return the body as JSON, or the events of a stream; MISSING if the body is not JSON."""
        if self.value is not MISSING:
            return self.value
        if self.events:
            events = [
                {"event": e.name, "id": e.id, "number": e.number, "data": e.value()}
                for e in self.events
            ]
            return {"events": events, "changes": [e.id for e in self.events if e.name == "change"]}
        try:
            return json.loads(self.body, parse_float=ExactFloat)
        except (ValueError, RecursionError):
            return MISSING

    def curl(self) -> str:
        """Return a shell command that repeats the request."""
        if self.exchange is not None:
            return self.exchange.curl()
        if len(self.pieces) > LONGEST_INLINE:
            return f"{self.shell} < {shlex.quote(kept_file(self.pieces))}"
        return f"{printf(self.pieces)} | {self.shell}" if self.pieces else self.shell
