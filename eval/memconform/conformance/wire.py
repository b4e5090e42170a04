"""Checks the shapes of all exchanges, in every case, against the contract's models. Pure."""

import json
import re
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ValidationError

from memconform.client.failures import ContractViolatedError, DaemonFailedError
from memconform.client.stream import AskStream
from memconform.conformance.matchers import is_rfc3339
from memconform.conformance.pointer import MISSING
from memconform.conformance.step_result import Event, StepResult
from memconform.contract.ask import AskRequest
from memconform.contract.core import (
    SearchRequest,
    SearchResponse,
    ranking_fault,
    trace_fault,
)
from memconform.contract.events import PLAIN_EVENTS, Change
from memconform.contract.problem import MEDIA_TYPE, STATUS, Problem
from memconform.contract.schemas import BYTES, ROUTES, Route
from memconform.contract.wire import JsonValue
from memconform.validation import first_fault

_PATTERNS = [
    (route, re.compile(route.path.replace("{brainId}", r"[^/?]+") + r"(?:\?.*)?"))
    for route in ROUTES
]


@dataclass(frozen=True, slots=True)
class WireFault:
    """A violation of the contract's shapes."""

    message: str
    blame: Literal["daemon", "case"] = "daemon"
    """`case` if the case sends an invalid request and expects it to succeed."""


def route_of(method: str, target: str) -> Route | None:
    """Return the route of a request, given its method and its target as sent."""
    return next(
        (r for r, pattern in _PATTERNS if r.method.upper() == method and pattern.fullmatch(target)),
        None,
    )


def wire_faults(outcome: StepResult, sent: bytes, *, expects_success: bool) -> list[WireFault]:
    """Return what is wrong with the shape of a response.

    A missing response is no fault here: that is left to the expectations of the case.

    Args:
        outcome: The result of a request.
        sent: Body of the request.
        expects_success: Whether the case expects the request to succeed.
    """
    method, _, target = outcome.label.partition(" ")
    status = outcome.status
    if status is None:
        return []
    route = route_of(method, target)
    if outcome.failure is not None and (route is None or not route.stream):
        return [WireFault(f"the response is incomplete: {outcome.failure}")]
    if status >= 400:
        return [WireFault(fault) for fault in _problem_faults(outcome, method)]
    if status >= 300 or route is None:
        return []
    if not 200 <= status < 300:
        return [WireFault(f"status {status} is not in the contract")]
    faults = [WireFault(fault) for fault in _success_faults(route, outcome, sent)]
    violation = _request_violation(route, sent)
    if violation is not None:
        blame: Literal["daemon", "case"] = "case" if expects_success else "daemon"
        faults.append(WireFault(f"an invalid request was accepted: {violation}", blame))
    return faults


def _problem_faults(outcome: StepResult, method: str) -> list[str]:
    faults = []
    if outcome.status == 405 and outcome.header("allow") is MISSING:
        faults.append("405 without Allow")
    if outcome.status == 500:
        faults.append("500: an error of the daemon itself, whatever the client sent")
    if method == "HEAD":
        return faults + (["the response to a HEAD has a body"] if outcome.body else [])
    media = outcome.header("content-type")
    if str(media).partition(";")[0].strip().lower() != MEDIA_TYPE:
        return [*faults, f"status {outcome.status} with Content-Type {media}, not {MEDIA_TYPE}"]
    try:
        problem = Problem.model_validate_json(outcome.body)
    except ValidationError as error:
        return [*faults, f"the problem body: {first_fault(error)}"]
    if problem.status != outcome.status:
        faults.append(f"the problem has status {problem.status}, but the response {outcome.status}")
    if STATUS.get(problem.code) != problem.status:
        faults.append(f"code {problem.code!r} does not match status {problem.status}")
    return faults


def _success_faults(route: Route, outcome: StepResult, sent: bytes) -> list[str]:
    if outcome.status != route.status:
        return [f"status {outcome.status}; the contract requires {route.status}"]
    expected = _media_type(route)
    media = str(outcome.header("content-type")).partition(";")[0].strip().lower()
    if expected is None:
        return ["a body, but none is allowed"] if outcome.body else []
    if media != expected:
        return [f"Content-Type {media}, not {expected}"]
    if route.stream:
        return _event_faults(route, outcome, sent)
    return _body_faults(route.answer, outcome.body, sent) if route.answer is not None else []


def _media_type(route: Route) -> str | None:
    """Return the media type of a success response; None if it has no body."""
    if route.stream:
        return "text/event-stream"
    if route.answers == "bytes":
        return BYTES
    return None if route.answer is None else "application/json"


def _body_faults(model: type[BaseModel], body: bytes, sent: bytes) -> list[str]:
    try:
        answer = model.model_validate_json(body)
    except ValidationError as error:
        return [f"the response body: {first_fault(error)}"]
    if not isinstance(answer, SearchResponse):
        return []
    request = _parse(SearchRequest, sent)
    if request is None:
        return []
    faults = (
        trace_fault(answer.trace, request.mode),
        ranking_fault(answer.chunks, request.top_k, ranks_all=False),
    )
    return [fault for fault in faults if fault is not None]


def _parse(model: type[BaseModel], sent: bytes) -> JsonValue:
    try:
        return model.model_validate_json(_without_nulls(sent), by_alias=True, by_name=False)
    except (ValidationError, ValueError, RecursionError):
        return None


def _without_nulls(sent: bytes) -> bytes:
    """Remove the keys that are null, which mean the same as missing ones."""
    body = json.loads(sent)
    if not isinstance(body, dict):
        return sent
    return json.dumps({key: value for key, value in body.items() if value is not None}).encode()


def _event_faults(route: Route, outcome: StepResult, sent: bytes) -> list[str]:
    if "retrieve" in route.stream:
        return _ask_faults(outcome, sent)
    return [fault for event in outcome.events for fault in _change_faults(event)]


def _change_faults(event: Event) -> list[str]:
    if event.name in PLAIN_EVENTS:
        return [] if event.data == "ok" else [f"{event.name} has the data {event.data!r}"]
    if event.name != "change":
        return []
    try:
        change = Change.model_validate_json(event.data)
    except ValidationError as error:
        return [f"change: {first_fault(error)}"]
    faults = (
        []
        if is_rfc3339(change.when)
        else [f"change: when is {change.when!r}, not an RFC 3339 date-time"]
    )
    if (change.old_path is not None) != (change.kind == "renamed"):
        faults.append(f"change: kind {change.kind} has old_path {change.old_path!r}")
    return faults


def _ask_faults(outcome: StepResult, sent: bytes) -> list[str]:
    request = _parse(AskRequest, sent)
    if request is None:
        return []
    stream = AskStream(request, whole_brain=False)
    try:
        for event in outcome.events:
            stream.feed(event.name, event.data)
        if outcome.ended == "end":
            stream.finish()
    except ContractViolatedError as error:
        return [f"{error.code}: {error.message}"]
    except DaemonFailedError:
        # The stream reported an error, and did so as the contract requires.
        return []
    return []


def _request_violation(route: Route, sent: bytes) -> str | None:
    if route.request is None:
        return None
    try:
        route.request.model_validate_json(_without_nulls(sent), by_alias=True, by_name=False)
    except ValidationError as error:
        return first_fault(error)
    except (ValueError, RecursionError) as error:
        return str(error)
    return None
