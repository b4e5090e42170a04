"""Names the causes of failures: the same defect has the same name in every case that shows it.

A cause has no values in it that differ between cases, such as ids, paths and numbers of documents:
`POST /v1/brains/{brain}/search: missing key trace.searchMs`. Pure.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from memconform.conformance.routes import brain_in, request_name, route_of
from memconform.conformance.step_result import StepResult
from memconform.contract.ask import EVENTS
from memconform.contract.events import PLAIN_EVENTS
from memconform.contract.schemas import Route
from memconform.errors import DaemonError

_EVENT_NAMES = frozenset({*EVENTS, *PLAIN_EVENTS, "change"})

_ALWAYS_FOUND = {"health", "version", "listBrains", "createBrain"}
"""Names of routes for which the contract has no 404."""
_FOUND_IN_A_BRAIN = {"ingestFile", "ingestBatch", "search", "ask", "events"}
"""Names of routes that answer 404 only if the brain does not exist."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with the result of a step."""

    message: str
    """For people, with the values."""
    cause: str
    """What is wrong, without values; `cause_of` adds where."""
    is_effect: bool = False
    """Whether it may merely follow from an earlier request that failed, as a document that is
    missing because it was never stored does."""
    any_route: bool = False
    """Whether it concerns the daemon's error responses as such, and no route in particular."""


def cause_of(outcome: StepResult, fault: Fault) -> str:
    """Return the full cause: what the fault concerns, and what is wrong."""
    if fault.any_route and outcome.status is not None and outcome.status >= 400:
        return f"error responses with status {outcome.status}: {fault.cause}"
    return f"{step_name(outcome)}: {fault.cause}"


def step_name(outcome: StepResult) -> str:
    """Name a step by its route, or by its kind if it sent no request."""
    kind, _, rest = outcome.label.partition(" ")
    if kind.endswith(":") and kind != "raw:":
        return f"{kind} {rest.partition(' ')[0]}"
    return request_name(*_request(outcome)) if rest else kind


def place_name(parts: Iterable[object]) -> str:
    """Name a place inside a JSON value by its keys; an index becomes `*`."""
    names = ["*" if str(part).isdigit() else str(part) for part in parts]
    return ".".join(name.replace("~1", "/").replace("~0", "~") for name in names)


def status_fault(
    message: str, outcome: StepResult, expected: Sequence[int], brain: str | None = None
) -> Fault:
    """Name the cause of a response with another status than expected, or of a missing one.

    Args:
        message: The fault in words.
        outcome: The result of the step.
        expected: The statuses that are expected.
        brain: The brain that exists, if one does; a 404 about it says that a route is missing.
    """
    status = outcome.status
    if status is None:
        return Fault(message, no_response(outcome))
    route = _route(outcome)
    expects_success = all(200 <= code < 300 for code in expected)
    named = brain_in(_request(outcome)[1])
    own = named is not None and named == brain
    if _is_never_valid(route, status, brain_exists=own or expects_success):
        # Whatever the request was: without the route, every case about it fails, in its own way.
        return Fault(
            message, f"status {status}, never valid here", is_effect=bool(named) and not own
        )
    if route is not None and expects_success:
        # A case may permit any success; the defect is the same as where it names one.
        expected = (route.status,)
    wanted = " or ".join(str(code) for code in sorted(set(expected)))
    return Fault(message, f"status {status}, expected {wanted}", is_effect=status < 500)


def _is_never_valid(route: Route | None, status: int, *, brain_exists: bool) -> bool:
    if route is None or status not in (404, 405, 501):
        return False
    if status != 404 or route.name in _ALWAYS_FOUND:
        return True
    return brain_exists and route.name in _FOUND_IN_A_BRAIN


def _request(outcome: StepResult) -> tuple[str, str]:
    """Return the method and the target of a step's request, read from its label."""
    method, _, target = outcome.label.removeprefix("raw: ").partition(" ")
    return method, target.partition(" ")[0]


def _route(outcome: StepResult) -> Route | None:
    return route_of(*_request(outcome))


def no_response(outcome: StepResult) -> str:
    """Return the cause of a response that is missing."""
    failure = outcome.failure or ""
    if outcome.label.startswith("disk:"):
        return "no such file"
    if failure.startswith(("ConnectError", "no connection")):
        return "no connection"
    if failure.startswith("the response is not HTTP"):
        return "the response is not HTTP"
    return "no response in time" if outcome.ended == "open" else "no response"


def events_cause(outcome: StepResult) -> str:
    """Return the cause of events in another order than expected, by what came instead."""
    names: list[str] = []
    for event in outcome.events:
        name = event.name if event.name in _EVENT_NAMES else "unknown"
        if name != "ping" and names[-1:] != [name]:
            names.append(name)
    shown = " ".join(names[:_SHOWN_EVENTS]) + (" …" if len(names) > _SHOWN_EVENTS else "")
    return f"wrong events: {shown}" if names else "no events"


_SHOWN_EVENTS = 6


def is_timeout(error: BaseException) -> bool:
    """Whether an error, or what caused it, is a timeout of a start or of a case."""
    if error.__cause__ is not None and is_timeout(error.__cause__):
        return True
    is_start = isinstance(error, DaemonError) and error.code == "daemon_not_ready"
    return is_start or isinstance(error, TimeoutError)


def start_cause(error: DaemonError, env: Mapping[str, str]) -> str:
    """Return the cause of a daemon that does not start, given what a case sets for it.

    A provider is named, because a daemon may know only some; no other value is.
    """
    shown = [
        f"{name}={value}" if name.endswith("_PROVIDER") else name
        for name, value in sorted(env.items())
    ]
    return f"the daemon does not start{' with ' if shown else ''}{', '.join(shown)}: {error.code}"


def exit_cause(reason: str, exchanges: Iterable[StepResult]) -> str:
    """Return the cause of a daemon that exited, given how, and the exchanges of the case.

    The first exchange that broke off is the one during which it exited.
    """
    broken = next((e for e in exchanges if e.exchange is not None and e.ended == "cut"), None)
    where = f"{step_name(broken)}: " if broken is not None else ""
    return f"{where}the daemon exits: {reason.partition(chr(10))[0]}"
