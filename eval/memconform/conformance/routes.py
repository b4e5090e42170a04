"""Finds the route of the contract that a request belongs to, and names requests by it. Pure."""

import re

from memconform.contract.schemas import ROUTES, Route

_PATTERNS = [
    (route, re.compile(route.path.replace("{brainId}", r"(?P<brain>[^/?]+)") + r"(?:\?.*)?"))
    for route in ROUTES
]

UPSTREAM_CONTROL = "/_control/"
"""The prefix of the routes by which a case scripts the upstream, and reads what was sent to it."""

UNKNOWN_ROUTE = "unknown route"
WRONG_METHOD = "wrong method"


def route_of(method: str, target: str) -> Route | None:
    """Return the route of a request, given its method and its target as sent."""
    return next(
        (r for r, pattern in _PATTERNS if r.method.upper() == method and pattern.fullmatch(target)),
        None,
    )


def routes_at(target: str) -> list[Route]:
    """Return the routes of the contract that share the path of a target, whatever their method."""
    return [route for route, pattern in _PATTERNS if pattern.fullmatch(target)]


def brain_in(target: str) -> str | None:
    """Return the id of the brain that a target names; None if it names none."""
    match = next((m for _, pattern in _PATTERNS if (m := pattern.fullmatch(target))), None)
    return match.groupdict().get("brain") if match is not None else None


def request_name(method: str, target: str) -> str:
    """Name a request by its route, as `POST /v1/brains/{brain}/search`.

    All requests outside the contract share a name, by what is wrong with them: the defects that
    they show concern no route. Those to the scripted upstream, which say what the daemon sent to
    it, are named as such.
    """
    if target.startswith(UPSTREAM_CONTROL):
        return f"upstream: {method} {target}"
    route = route_of(method, target)
    if route is not None:
        return f"{method} {route.path.replace('{brainId}', '{brain}')}"
    return WRONG_METHOD if routes_at(target) else UNKNOWN_ROUTE
