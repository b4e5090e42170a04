"""What daemons are asked: a few requests to a brain of their own. Pure."""

import base64
from dataclasses import dataclass, field
from typing import Any

from memconform.contract.schemas import ROUTES, Route

BRAIN = "{brainId}"
"""Stands for the brain's id in targets and bodies."""

_BY_NAME = {route.name: route for route in ROUTES}


@dataclass(frozen=True, slots=True)
class Call:
    """One request; `target` holds BRAIN, percent-encoded already."""

    route: str
    """The name of the route that it is for, or for which it was before it was spoilt."""
    method: str
    target: str
    body: Any = None
    """JSON, or bytes; None: no body."""
    headers: dict[str, str] = field(default_factory=dict)
    spoilt: str = ""
    """What was made wrong about it; empty: it is valid."""


@dataclass(frozen=True, slots=True)
class Program:
    calls: tuple[Call, ...]
    listens: bool = False
    """Whether the brain's events are listened to meanwhile."""


def route(name: str) -> Route:
    return _BY_NAME[name]


def document(path: str, content: bytes, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """A document as ingest takes it."""
    encoded = base64.b64encode(content).decode()
    return {"path": path, "contentType": "text/markdown", "contentBase64": encoded, **more}
