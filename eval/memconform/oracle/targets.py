"""Splits request targets into routes and parameters. Pure."""

import re
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from memconform.contract.schemas import ROUTES, Route
from memconform.oracle.predictions import Rejection, invalid

_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True)
class Target:
    """What a request is addressed to."""

    routes: dict[str, Route]
    """By method; empty if no route has this path."""
    brain: str
    query: str


def parse_target(target: str) -> Target:
    """Find the routes of a target."""
    path, _, query = target.partition("?")
    routes = {}
    brain = ""
    for route in ROUTES:
        pattern = re.escape(route.path).replace(r"\{brainId\}", "([^/]+)")
        if match := re.fullmatch(pattern, path):
            routes[route.method.upper()] = route
            brain = match[1] if match.groups() else ""
    return Target(routes, brain, query)


def parameters(route: Route, query: str) -> tuple[dict[str, str], list[Rejection], bool]:
    """Return parameters, rejections, and whether a rejection is permitted but not required."""
    rule = "documents.parameters"
    known = {p.name: p for p in route.parameters}
    values: dict[str, str] = {}
    rejections: list[Rejection] = []
    repeats = False
    seen = set()
    if _ESCAPE.search(query):
        rejections.append(invalid(rule))
    for pair in query.split("&"):
        raw_name, _, raw_value = pair.partition("=")
        try:
            name, value = _decoded(raw_name), _decoded(raw_value)
        except UnicodeDecodeError:
            rejections.append(invalid(rule))
            continue
        if name in seen and name in known:
            rejections.append(invalid(rule))
        # No rule says whether a parameter that is ignored may occur twice.
        repeats |= name in seen
        seen.add(name)
        if name in known:
            values[name] = value
    rejections += [invalid(rule) for p in route.parameters if p.required and p.name not in values]
    flags = [values[p.name] for p in route.parameters if p.flag and p.name in values]
    rejections += [invalid(rule) for flag in flags if flag not in ("true", "false")]
    return values, rejections, repeats


def _decoded(form: str) -> str:
    return unquote_to_bytes(form.replace("+", " ")).decode()
