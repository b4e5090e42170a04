"""What the scripted daemon has seen of one request of a client."""

import asyncio
import json
import time
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class SeenRequest:
    """A request of the client, as it arrived."""

    connection: int
    method: str
    target: str
    headers: list[tuple[str, str]]
    at: float
    """When its headers were complete, in seconds of the monotonic clock."""
    body: bytes = b""
    answered_at: float | None = None
    """When the response was begun."""
    ended_at: float | None = None
    """When the connection ended before the response had been read."""
    is_given_up: bool = False
    """Whether the daemon waited in vain for the client to end the request."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    """Set with `ended_at`."""
    unobserved: int | None = None
    """The number of events for which the daemon waited in vain to be reported."""
    is_unoffered: bool = False
    """Whether the response was not encoded, because the client does not offer its encoding."""
    sent: list[bytes] = field(default_factory=list)
    """The first writes of the response, as they were sent."""
    longest_pause: float = 0.0
    """The longest of the pauses that the case asks for, as it was kept, in seconds."""

    def end(self) -> None:
        """Note that the connection has ended."""
        self.ended_at = time.monotonic()
        self.ended.set()

    def header(self, name: str) -> str | None:
        """The first header of that name, in lower case; None if there is none."""
        return next((value for key, value in self.headers if key == name), None)

    def json(self) -> Any:  # noqa: ANN401 - whatever the client sent
        """Its body; None if that is not JSON."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None
