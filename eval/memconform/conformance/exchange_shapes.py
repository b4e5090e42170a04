"""Checks the shapes of all exchanges, in every case, against the contract's models. Pure."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ValidationError

from memconform.client.ask_stream import AskStream
from memconform.client.failures import ContractViolatedError, DaemonFailedError
from memconform.conformance.causes import (
    Fault,
    cause_of,
    events_cause,
    status_fault,
)
from memconform.conformance.matchers import is_rfc3339
from memconform.conformance.pointer import MISSING
from memconform.conformance.routes import route_of
from memconform.conformance.step_result import Event, StepResult
from memconform.conformance.value_causes import (
    accepted_cause,
    body_faults,
    media_fault,
)
from memconform.contract.ask import AskRequest
from memconform.contract.core import (
    SearchRequest,
    SearchResponse,
    ranking_fault,
    trace_fault,
)
from memconform.contract.dialect import Dialect
from memconform.contract.dialect_keys import DialectError
from memconform.contract.dialect_objects import loosened
from memconform.contract.events import PLAIN_EVENTS, Change
from memconform.contract.missing_keys import gaps
from memconform.contract.problem import MEDIA_TYPE, STATUS, Problem
from memconform.contract.schemas import BYTES, Route
from memconform.contract.wire import JsonValue
from memconform.validation_faults import first_fault


@dataclass(frozen=True, slots=True)
class WireFault:
    """A violation of the contract's shapes."""

    message: str
    cause: str
    blame: Literal["daemon", "case"] = "daemon"
    """`case` if the case sends an invalid request and expects it to succeed."""


def wire_faults(
    outcome: StepResult,
    sent: bytes,
    *,
    expects_success: bool,
    expected: Sequence[int] = (),
    brain: str | None = None,
) -> list[WireFault]:
    """Return what is wrong with the shape of a response, one fault for each cause.

    A missing response is no fault here: that is left to the expectations of the case.

    Args:
        outcome: The result of a request.
        sent: Body of the request.
        expects_success: Whether the case expects the request to succeed.
        expected: The statuses that the case expects; empty if it leaves them to the contract.
        brain: The id of the case's own brain, once it exists.
    """
    method, _, target = outcome.label.partition(" ")
    status = outcome.status
    if status is None:
        return []
    route = route_of(method, target)
    if not expected and route is not None:
        expected = (route.status,)
    if outcome.failure is not None and (route is None or not route.stream):
        message = f"the response is incomplete: {outcome.failure}"
        return _located(outcome, [Fault(message, "the response is incomplete")])
    if status >= 400:
        return _located(outcome, _problem_faults(outcome, method, expected, brain))
    if status >= 300 or route is None:
        return []
    if not 200 <= status < 300:
        message = f"status {status} is not in the contract"
        return _located(outcome, [status_fault(message, outcome, expected, brain)])
    wanted = (route.status,) if status in expected else expected
    faults = _located(outcome, _success_faults(route, outcome, sent, wanted))
    violation = request_violation(route, sent)
    if violation is not None:
        blame: Literal["daemon", "case"] = "case" if expects_success else "daemon"
        faults.append(WireFault(violation.message, cause_of(outcome, violation), blame))
    return faults


def _located(outcome: StepResult, faults: Sequence[Fault]) -> list[WireFault]:
    """Return the faults with their full causes, each cause once."""
    located: dict[str, WireFault] = {}
    for fault in faults:
        cause = cause_of(outcome, fault)
        located.setdefault(cause, WireFault(fault.message, cause))
    return list(located.values())


def _problem_faults(
    outcome: StepResult, method: str, expected: Sequence[int], brain: str | None
) -> list[Fault]:
    faults = []
    if outcome.status == 405 and outcome.header("allow") is MISSING:
        faults.append(Fault("405 without Allow", "no header allow", any_route=True))
    if outcome.status == 500 and 500 not in expected:
        message = "500: an error of the daemon itself, whatever the client sent"
        faults.append(status_fault(message, outcome, expected, brain))
    if method == "HEAD":
        if outcome.body:
            faults.append(Fault("the response to a HEAD has a body", "a body after HEAD"))
        return faults
    media = outcome.header("content-type")
    if str(media).partition(";")[0].strip().lower() != MEDIA_TYPE:
        message = f"status {outcome.status} with Content-Type {media}, not {MEDIA_TYPE}"
        return [*faults, media_fault(message, media, MEDIA_TYPE)]
    try:
        problem = Problem.model_validate_json(outcome.body)
    except ValidationError as error:
        return [*faults, *body_faults(error, "the problem body", any_route=True)]
    if problem.status != outcome.status:
        message = f"the problem has status {problem.status}, but the response {outcome.status}"
        faults.append(Fault(message, "wrong value at status", any_route=True))
    if STATUS.get(problem.code) != problem.status:
        message = f"code {problem.code!r} does not match status {problem.status}"
        known = f"code {problem.code}" if problem.code in STATUS else "an unknown code"
        faults.append(Fault(message, f"{known} with another status", any_route=True))
    return faults


def _success_faults(
    route: Route, outcome: StepResult, sent: bytes, wanted: Sequence[int]
) -> list[Fault]:
    if outcome.status != route.status:
        message = f"status {outcome.status}; the contract requires {route.status}"
        return [status_fault(message, outcome, wanted)]
    expected = _media_type(route)
    media = outcome.header("content-type")
    essence = str(media).partition(";")[0].strip().lower()
    if expected is None:
        has_body = Fault("a body, but none is allowed", "a body, but none is allowed")
        return [has_body] if outcome.body else []
    if essence != expected:
        return [media_fault(f"Content-Type {essence}, not {expected}", media, expected)]
    if route.stream:
        return _event_faults(route, outcome, sent)
    return [] if route.answer is None else _answer_faults(route.answer, outcome, sent)


def _answer_faults(model: type[BaseModel], outcome: StepResult, sent: bytes) -> list[Fault]:
    if outcome.dialect is None:
        return _body_faults(model, outcome.body, sent)
    try:
        outcome.dialect.translate(_json(outcome.received), model, lenient=True)
    except DialectError as error:
        return [Fault(f"the response body: {error.message}", "a key is spelt in two ways")]
    missing = _undeclared(outcome.received, model, outcome.dialect)
    return [*missing, *_body_faults(loosened(model), outcome.body, sent)]


def _json(text: bytes) -> JsonValue:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _undeclared(text: bytes, model: type[BaseModel], dialect: Dialect) -> list[Fault]:
    """Return the unknowable keys that are missing although the dialect declares them to be there.

    A model with the dialect's freedom would not find them.
    """
    return [
        Fault(f"the response body: {gap.key}: missing", f"missing key {gap.place}")
        for gap in gaps(text, model, dialect)
        if gap.unknowable
    ]


def _media_type(route: Route) -> str | None:
    """Return the media type of a success response; None if it has no body."""
    if route.stream:
        return "text/event-stream"
    if route.answers == "bytes":
        return BYTES
    return None if route.answer is None else "application/json"


def _body_faults(model: type[BaseModel], body: bytes, sent: bytes) -> list[Fault]:
    try:
        answer = model.model_validate_json(body)
    except ValidationError as error:
        return body_faults(error, "the response body")
    if not isinstance(answer, SearchResponse):
        return []
    request = _parse(SearchRequest, sent)
    if request is None:
        return []
    faults = (
        # The contract knows no reason to skip a stage of a mode (core.mode.trace).
        trace_fault(answer.trace.model_copy(update=_NO_REASONS), request.mode),
        ranking_fault(answer.chunks, request.top_k, ranks_all=False),
    )
    return [Fault(fault, fault.cause) for fault in faults if fault is not None]


_NO_REASONS = {"rerank_skip_reason": None, "vector_skip_reason": None}


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


def _event_faults(route: Route, outcome: StepResult, sent: bytes) -> list[Fault]:
    if "retrieve" in route.stream:
        return _ask_faults(outcome, sent)
    return [fault for event in outcome.events for fault in _change_faults(event)]


def _change_faults(event: Event) -> list[Fault]:
    if event.name in PLAIN_EVENTS:
        message = f"{event.name} has the data {event.data!r}"
        fault = Fault(message, f"event {event.name}: wrong value at the data")
        return [] if event.data == "ok" else [fault]
    if event.name != "change":
        return []
    try:
        change = Change.model_validate_json(event.data)
    except ValidationError as error:
        return _in_event("change", error, "change")
    faults = []
    if not is_rfc3339(change.when):
        message = f"change: when is {change.when!r}, not an RFC 3339 date-time"
        faults.append(Fault(message, "event change: when has the wrong format"))
    if (change.old_path is not None) != (change.kind == "renamed"):
        message = f"change: kind {change.kind} has old_path {change.old_path!r}"
        faults.append(Fault(message, f"event change: wrong old_path with kind {change.kind}"))
    return faults


def _in_event(name: str, error: ValidationError, what: str) -> list[Fault]:
    return [
        Fault(fault.message, f"event {name}: {fault.cause}")
        for fault in body_faults(error, what, root="the data")
    ]


def _ask_faults(outcome: StepResult, sent: bytes) -> list[Fault]:
    request = _parse(AskRequest, sent)
    if request is None:
        return []
    stream = AskStream(request, whole_brain=False, dialect=outcome.dialect)
    name = ""
    try:
        for event in outcome.events:
            name = event.name
            stream.feed(*(event.received or (event.name, event.data)))
        if outcome.ended == "end":
            stream.finish()
    except ContractViolatedError as error:
        return _violation_faults(error, name, outcome)
    except DaemonFailedError:
        # The stream reported an error, and did so as the contract requires.
        return []
    return []


def _violation_faults(error: ContractViolatedError, event: str, outcome: StepResult) -> list[Fault]:
    """Name the causes of a violation, which the stream found at the event of this name."""
    message = f"{error.code}: {error.message}"
    match error.code, error.__cause__:
        case "bad_event", ValidationError() as cause:
            return _in_event(event, cause, f"{error.code}: {event}")
        case "bad_event", DialectError() as cause:
            what = f"missing key {cause.place}" if cause.place else "a key is spelt in two ways"
            return [Fault(message, f"event {event}: {what}")]
        case "event_order" | "stream_ended_early", _:
            return [Fault(message, events_cause(outcome))]
    # The codes are stable, and documented.
    return [Fault(message, error.code)]


def request_violation(route: Route, sent: bytes) -> Fault | None:
    """Return how the body of a request violates the contract; None if it does not."""
    if route.request is None:
        return None
    try:
        route.request.model_validate_json(_without_nulls(sent), by_alias=True, by_name=False)
    except (ValueError, RecursionError) as error:
        why = first_fault(error) if isinstance(error, ValidationError) else str(error)
        return Fault(f"an invalid request was accepted: {why}", accepted_cause(error))
    return None
