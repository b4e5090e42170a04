"""Programs: short sequences of requests to a brain of their own. Pure."""

import base64
import reprlib
from dataclasses import dataclass, field
from typing import Any

from memconform.contract.schemas import ROUTES, Route

BRAIN = "{brainId}"
"""Placeholder for the brain's id in targets and bodies."""

RESTARTS = ("restart", "kill")
"""Names of calls that are not requests: the daemon is stopped with SIGTERM or SIGKILL, and started
again on its state."""
RESTARTED = 0
"""Status of the answer to such a call."""

_SHORT = reprlib.Repr()
_SHORT.maxlist, _SHORT.maxdict, _SHORT.maxstring, _SHORT.maxother = 8, 12, 200, 200

_BY_NAME = {route.name: route for route in ROUTES}


@dataclass(frozen=True, slots=True)
class Call:
    """One request; its `target` contains BRAIN and is already percent-encoded."""

    route: str
    """Name of the route it is for, or was for before it was made invalid."""
    method: str
    target: str
    body: Any = None
    """JSON or bytes; None: no body."""
    headers: dict[str, str] = field(default_factory=dict)
    defect: str = ""
    """What was made invalid; empty if the request is valid."""

    def __repr__(self) -> str:
        # Hypothesis makes a text of every program, and warns of those beyond 30,000 characters.
        line = f"{self.method} {_SHORT.repr(self.target)}"
        more = f", {self.headers}, {self.defect!r}" if self.headers or self.defect else ""
        return f"Call({self.route!r}, {line}, {_SHORT.repr(self.body)}{more})"


@dataclass(frozen=True, slots=True)
class Program:
    """Requests to send in order."""

    calls: tuple[Call, ...]
    listens: bool = False
    """Whether to read the brain's events meanwhile."""

    def _repr_pretty_(self, printer: Any, *_: object) -> None:  # noqa: ANN401 - of Hypothesis
        """Print it shortened, and not the calls of strategies that built it."""
        printer.text(repr(self))


def route(name: str) -> Route:
    """Return a route by name; raises KeyError if there is none."""
    return _BY_NAME[name]


def document(path: str, content: bytes, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Build the body of an ingest request; `more` are its optional keys."""
    encoded = base64.b64encode(content).decode()
    return {"path": path, "contentType": "text/markdown", "contentBase64": encoded, **more}
