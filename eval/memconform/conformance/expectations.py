"""Evaluates the expectations of a case against the results of its steps. Pure."""

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from memconform.conformance.case import Expectation, ProblemSpec
from memconform.conformance.causes import (
    Fault,
    events_cause,
    no_response,
    status_fault,
)
from memconform.conformance.matchers import BadMatcherError, mismatches
from memconform.conformance.mismatch import Mismatch, abbreviate
from memconform.conformance.pointer import MISSING, resolve
from memconform.conformance.request_bodies import content
from memconform.conformance.step_result import StepResult
from memconform.conformance.value_causes import (
    event_fault,
    header_fault,
    mismatch_fault,
)
from memconform.conformance.variables import substitute
from memconform.contract.problem import MEDIA_TYPE, STATUS
from memconform.contract.wire import JsonValue

_NAME = re.compile(r"[a-z_]+")


@dataclass(frozen=True, slots=True)
class ExpectationResult:
    """Whether an expectation holds, and why not."""

    details: tuple[Fault, ...] = ()
    """What is wrong, and why; empty if the expectation holds."""
    non_preferred: str = ""
    """Describes the alternative that holds, if it is not the preferred one."""
    preference: str = ""
    """The cause of a warning about it."""

    @property
    def faults(self) -> tuple[str, ...]:
        """What is wrong, in words."""
        return tuple(fault.message for fault in self.details)

    @property
    def holds(self) -> bool:
        """Whether there are no faults."""
        return not self.details


def evaluate(
    expected: Expectation, outcome: StepResult, variables: Mapping[str, Any]
) -> ExpectationResult:
    """Evaluate `expected` against `outcome`, after filling in its variables.

    Raises:
        UnknownVariableError: if a variable is not in `variables`.
    """
    if expected.any_of is not None:
        return _any_of(expected.any_of, outcome, variables)
    try:
        faults = _faults(expected, outcome, variables)
    except BadMatcherError as error:
        # The case's own matchers were checked at load time: this one is a captured response value.
        message = f"a captured value looks like a matcher: {error}"
        faults = [Fault(message, "a captured value looks like a matcher")]
    if outcome.exchange is not None and outcome.status is None and not faults:
        # An expectation that something is absent would hold for a missing response too.
        faults = [Fault("expected a response, got none", no_response(outcome))]
    failure = outcome.failure
    if faults and failure and failure not in (fault.message for fault in faults):
        cause = no_response(outcome) if outcome.status is None else faults[0].cause
        faults = [*faults, Fault(failure, cause)]
    return ExpectationResult(tuple(faults))


def _any_of(
    alternatives: Sequence[Expectation], outcome: StepResult, variables: Mapping[str, Any]
) -> ExpectationResult:
    """Evaluate alternatives, of which the first is preferred."""
    results = [evaluate(alternative, outcome, variables) for alternative in alternatives]
    index = next((n for n, result in enumerate(results) if result.holds), None)
    if index == 0:
        return ExpectationResult()
    if index is not None:
        preferred, actual = alternatives[0], alternatives[index]
        note = f"{describe(actual)}; better {describe(preferred)}"
        return ExpectationResult((), note, f"{_brief(actual)}, better {_brief(preferred)}")
    # The alternative with the status that came says more about the rest of the response.
    closest = next(
        (r for e, r in zip(alternatives, results, strict=True) if outcome.status in statuses(e)),
        results[0],
    )
    notes = [Fault(f"not {describe(e)}", closest.details[0].cause) for e in alternatives]
    return ExpectationResult((*notes, *closest.details))


def statuses(expected: Expectation) -> list[int]:
    """Return the statuses for which an expectation can hold; empty if it is about none."""
    if expected.any_of is not None:
        return [status for branch in expected.any_of for status in statuses(branch)]
    if expected.problem is not None:
        return [STATUS[expected.problem.code]]
    if expected.status is None:
        return []
    return expected.status if isinstance(expected.status, list) else [expected.status]


def _brief(expected: Expectation) -> str:
    """Describe an alternative without its values."""
    codes = statuses(expected)
    if codes:
        return f"status {' or '.join(map(str, codes))}"
    name = expected.header or expected.event or expected.at or ""
    return f"another {expected.subject} {name}".rstrip()


def _faults(
    expected: Expectation, outcome: StepResult, variables: Mapping[str, Any]
) -> list[Fault]:
    return _SUBJECTS[expected.subject](expected, outcome, variables)


def _match_faults(
    matcher: JsonValue, got: JsonValue, variables: Mapping[str, JsonValue], root: str
) -> list[Fault]:
    """Compare a value that is no part of a JSON body; `root` names it in causes."""
    return [
        mismatch_fault(mismatch, f"{root}: {mismatch}", body=got, root=root)
        for mismatch in mismatches(substitute(matcher, variables), got)
    ]


def _status_faults(expected: Expectation, outcome: StepResult, _: Mapping[str, Any]) -> list[Fault]:
    codes = statuses(expected)
    return [] if outcome.status in codes else [_status_fault(codes, outcome)]


def _each_status_faults(
    expected: Expectation, outcome: StepResult, variables: Mapping[str, Any]
) -> list[Fault]:
    """Compare the statuses of all responses on a raw connection."""
    wanted = substitute(expected.statuses, variables)
    got = outcome.statuses
    faults = []
    for mismatch in mismatches(wanted, got):
        fault = mismatch_fault(mismatch, f"statuses: {mismatch}", body=got, root="the statuses")
        codes = _codes(wanted, mismatch)
        if codes and isinstance(mismatch.got, int):
            response = replace(outcome, status=mismatch.got)
            fault = status_fault(fault.message, response, codes)
        elif mismatch.got is None:
            fault = Fault(fault.message, no_response(outcome))
        faults.append(fault)
    return faults


def _codes(wanted: JsonValue, mismatch: Mismatch) -> list[int]:
    """The statuses of which one was expected at the place of a mismatch; empty if not stated."""
    if isinstance(mismatch.wanted, int):
        return [mismatch.wanted]
    at = resolve(wanted, mismatch.where)
    choice = at.get("$in") if isinstance(at, dict) else None
    return [code for code in choice if isinstance(code, int)] if isinstance(choice, list) else []


def _header_faults(
    expected: Expectation, outcome: StepResult, variables: Mapping[str, Any]
) -> list[Fault]:
    name = expected.header or ""
    got = outcome.header(name)
    return [
        header_fault(name, mismatch, f"{name}: {mismatch}")
        for mismatch in mismatches(substitute(expected.is_, variables), got)
    ]


def _event_faults(
    expected: Expectation, outcome: StepResult, variables: Mapping[str, Any]
) -> list[Fault]:
    name, at = expected.event or "", expected.at or ""
    events = [event.value() for event in outcome.events if event.name == name]
    where = f"{name} {at}".rstrip()
    return [
        event_fault(mismatch, f"{where}: {mismatch}", events=events, at=at, name=name)
        for mismatch in mismatches(substitute(expected.is_, variables), resolve(events, at))
    ]


def _value_faults(
    expected: Expectation, outcome: StepResult, variables: Mapping[str, Any]
) -> list[Fault]:
    at, body = expected.at or "", outcome.json()
    root = "the body" if outcome.value is MISSING else "the result"
    return [
        mismatch_fault(
            mismatch, f"{at}: {mismatch}" if at else str(mismatch), body=body, at=at, root=root
        )
        for mismatch in mismatches(substitute(expected.is_, variables), resolve(body, at))
    ]


def _ended_faults(expected: Expectation, outcome: StepResult, _: Mapping[str, Any]) -> list[Fault]:
    endings = expected.ended if isinstance(expected.ended, list) else [expected.ended]
    if outcome.ended in endings:
        return []
    wanted = " or ".join(map(str, endings))
    message = f"expected the end {wanted}, got {outcome.ended!r}"
    return [Fault(message, f"ended is {outcome.ended}, expected {wanted}")]


def _fold_faults(
    expected: Expectation, outcome: StepResult, variables: Mapping[str, Any]
) -> list[Fault]:
    deltas = [event.value() for event in outcome.events if event.name == "answer_delta"]
    texts = [str(d.get("text", "")) if isinstance(d, dict) else "" for d in deltas]
    return _match_faults(expected.fold, "".join(texts), variables, "the joined answer deltas")


def _plain(source: JsonValue) -> JsonValue:
    return source if isinstance(source, str) else source.model_dump(exclude_none=True)


def _status_fault(codes: Sequence[int], outcome: StepResult) -> Fault:
    one_of = " or ".join(map(str, codes))
    got = f"{outcome.status} {_excerpt(outcome)}".rstrip()
    if outcome.status is None:
        got = "no response"
    return status_fault(f"expected status {one_of}, got {got}", outcome, codes)


def _excerpt(outcome: StepResult) -> str:
    return abbreviate(outcome.body.decode("utf-8", "replace")) if outcome.body else ""


def _problem_faults(
    expectation: Expectation, outcome: StepResult, variables: Mapping[str, Any]
) -> list[Fault]:
    expected = expectation.problem or ProblemSpec(code="internal_error")
    status = STATUS[expected.code]
    if outcome.status != status:
        return [_status_fault([status], outcome)]
    media = outcome.header("content-type")
    faults = [
        header_fault("Content-Type", mismatch, str(mismatch))
        for mismatch in mismatches({"$media_type": MEDIA_TYPE}, media, "Content-Type")
    ]
    shape = {
        "status": {"$equals": status},
        "title": {"$type": "string"},
        "detail": {"$type": "string"},
        "code": expected.code,
    }
    body = outcome.json()
    for mismatch in mismatches(shape, body):
        fault = mismatch_fault(mismatch, str(mismatch), body=body)
        faults.append(replace(fault, any_route=True, is_effect=False))
    if expected.detail is not None:
        detail = substitute(expected.detail, variables)
        faults += [
            mismatch_fault(mismatch, str(mismatch), body=body)
            for mismatch in mismatches(detail, resolve(body, "/detail"), "/detail")
        ]
    return faults


def _order_faults(expected: Expectation, outcome: StepResult, _: Mapping[str, Any]) -> list[Fault]:
    pattern = expected.events or ""
    names = " ".join(event.name for event in outcome.events)
    tokens = "".join(_NAME.sub(lambda m: f"(?:{m[0]} )", part) for part in pattern.split())
    if re.fullmatch(tokens, f"{names} " if names else ""):
        return []
    message = f"expected the events {pattern}, got {abbreviate(names)}"
    return [Fault(message, events_cause(outcome))]


def _id_faults(_: Expectation, outcome: StepResult, __: Mapping[str, Any]) -> list[Fault]:
    ids = [event.id for event in outcome.events if event.name == "change"]
    if not ids:
        return [Fault("expected change events with decimal ids, got none", "no event change")]
    if not all(id_.isascii() and id_.isdigit() for id_ in ids):
        message = f"expected change events with decimal ids, got the ids {abbreviate(ids)}"
        return [Fault(message, "ids of change events are not decimal")]
    if all(int(a) < int(b) for a, b in itertools.pairwise(ids)):
        return []
    message = f"expected rising ids, got {abbreviate(ids)}"
    return [Fault(message, "ids of change events do not rise")]


def _body_faults(
    expected: Expectation, outcome: StepResult, variables: Mapping[str, Any]
) -> list[Fault]:
    expected_body = content(substitute(_plain(expected.body), variables))
    if outcome.body == expected_body:
        return []
    start = next(
        (n for n, (a, b) in enumerate(zip(expected_body, outcome.body, strict=False)) if a != b),
        min(len(expected_body), len(outcome.body)),
    )
    excerpts = f"{expected_body[start : start + 40]!r} and {outcome.body[start : start + 40]!r}"
    sizes = f"expected {len(expected_body)} bytes, got {len(outcome.body)}"
    message = f"{sizes}; they differ from byte {start}: {excerpts}"
    cause = "the body has other bytes" if outcome.body else "the body is empty"
    return [Fault(message, cause, is_effect=True)]


_SUBJECTS: dict[str, Callable[[Expectation, StepResult, Mapping[str, Any]], list[Fault]]] = {
    "status": _status_faults,
    "statuses": _each_status_faults,
    "problem": _problem_faults,
    "header": _header_faults,
    "event": _event_faults,
    "events": _order_faults,
    "ids": _id_faults,
    "ended": _ended_faults,
    "body": _body_faults,
    "fold": _fold_faults,
    "text": lambda e, o, variables: _match_faults(
        e.text, o.body.decode("utf-8", "replace"), variables, "the text"
    ),
    "took_ms": lambda e, o, variables: _match_faults(e.took_ms, o.took_ms, variables, "took_ms"),
    "is": _value_faults,
}


def describe(expected: Expectation) -> str:
    """Describe an expectation in one line."""
    if expected.any_of is not None:
        return " or else ".join(describe(branch) for branch in expected.any_of)
    if expected.status is not None:
        return f"status {expected.status}"
    if expected.problem is not None:
        detail = f", detail {expected.problem.detail}" if expected.problem.detail else ""
        return f"problem {expected.problem.code} ({STATUS[expected.problem.code]}){detail}"
    if expected.header is not None:
        return f"header {expected.header} is {expected.is_}"
    if expected.event is not None:
        return f"event {expected.event} {expected.at or ''} is {expected.is_}"
    fields = expected.model_dump(by_alias=True, exclude_unset=True)
    at = fields.pop("at", "")
    ((subject, value),) = fields.items()
    return f"{at or 'the body'} is {value}" if subject == "is" else f"{subject} {value}"
