"""Evaluates the expectations of a case against the results of its steps. Pure."""

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memconform.conformance.bodies import content
from memconform.conformance.case import Expectation, ProblemSpec
from memconform.conformance.matchers import BadMatcherError, Mismatch, abbreviate, mismatches
from memconform.conformance.pointer import resolve
from memconform.conformance.step_result import StepResult
from memconform.conformance.variables import substitute
from memconform.contract.problem import MEDIA_TYPE, STATUS
from memconform.contract.wire import JsonValue

_NAME = re.compile(r"[a-z_]+")


@dataclass(frozen=True, slots=True)
class ExpectationResult:
    """Whether an expectation holds, and why not."""

    faults: tuple[str, ...] = ()
    """What is wrong; empty if the expectation holds."""
    non_preferred: str = ""
    """Describes the alternative that holds, if it is not the preferred one."""

    @property
    def holds(self) -> bool:
        """Whether there are no faults."""
        return not self.faults


def evaluate(
    expected: Expectation, outcome: StepResult, variables: Mapping[str, Any]
) -> ExpectationResult:
    """Evaluate `expected` against `outcome`, after filling in its variables.

    Raises:
        UnknownVariableError: if a variable is not in `variables`.
    """
    if expected.any_of is not None:
        branches = [evaluate(branch, outcome, variables) for branch in expected.any_of]
        index = next((n for n, branch in enumerate(branches) if branch.holds), None)
        if index is None:
            faults = [f"not {describe(b)}" for b in expected.any_of]
            return ExpectationResult((*faults, *branches[0].faults))
        preferred, actual = expected.any_of[0], expected.any_of[index]
        note = f"{describe(actual)}; better {describe(preferred)}" if index else ""
        return ExpectationResult((), note)
    try:
        faults = _faults(expected, outcome, variables)
    except BadMatcherError as error:
        # The case's own matchers were checked at load time: this one is a captured response value.
        faults = [f"a captured value looks like a matcher: {error}"]
    if outcome.exchange is not None and outcome.status is None and not faults:
        # An expectation that something is absent would hold for a missing response too.
        faults = ["expected a response, got none"]
    if faults and outcome.failure and outcome.failure not in faults:
        faults = [*faults, outcome.failure]
    return ExpectationResult(tuple(faults))


def _faults(expected: Expectation, outcome: StepResult, variables: Mapping[str, Any]) -> list[str]:
    return _SUBJECTS[expected.subject](expected, outcome, variables)


def _match_faults(
    matcher: JsonValue, got: JsonValue, variables: Mapping[str, JsonValue], where: str = ""
) -> list[str]:
    faults = mismatches(substitute(matcher, variables), got)
    return [f"{where}: {fault}" if where else str(fault) for fault in faults]


def _status_faults(expected: Expectation, outcome: StepResult, _: Mapping[str, Any]) -> list[str]:
    statuses = expected.status if isinstance(expected.status, list) else [expected.status]
    return [] if outcome.status in statuses else [_status_fault(statuses, outcome)]


def _header_faults(
    expected: Expectation, outcome: StepResult, variables: Mapping[str, Any]
) -> list[str]:
    name = expected.header or ""
    return _match_faults(expected.is_, outcome.header(name), variables, name)


def _event_faults(
    expected: Expectation, outcome: StepResult, variables: Mapping[str, Any]
) -> list[str]:
    data = [event.value() for event in outcome.events if event.name == expected.event]
    where = f"{expected.event} {expected.at or ''}".rstrip()
    return _match_faults(expected.is_, resolve(data, expected.at or ""), variables, where)


def _ended_faults(expected: Expectation, outcome: StepResult, _: Mapping[str, Any]) -> list[str]:
    endings = expected.ended if isinstance(expected.ended, list) else [expected.ended]
    if outcome.ended in endings:
        return []
    return [f"expected the end {' or '.join(map(str, endings))}, got {outcome.ended!r}"]


def _fold_faults(
    expected: Expectation, outcome: StepResult, variables: Mapping[str, Any]
) -> list[str]:
    deltas = [event.value() for event in outcome.events if event.name == "answer_delta"]
    texts = [str(d.get("text", "")) if isinstance(d, dict) else "" for d in deltas]
    return _match_faults(expected.fold, "".join(texts), variables, "the joined answer deltas")


def _value_faults(
    expected: Expectation, outcome: StepResult, variables: Mapping[str, Any]
) -> list[str]:
    at = expected.at or ""
    return _match_faults(expected.is_, resolve(outcome.json(), at), variables, at)


def _plain(source: JsonValue) -> JsonValue:
    return source if isinstance(source, str) else source.model_dump(exclude_none=True)


def _status_fault(statuses: Sequence[int | None], outcome: StepResult) -> str:
    one_of = " or ".join(map(str, statuses))
    if outcome.status is None:
        return f"expected status {one_of}, got no response"
    return f"expected status {one_of}, got {outcome.status} {_excerpt(outcome)}".rstrip()


def _excerpt(outcome: StepResult) -> str:
    return abbreviate(outcome.body.decode("utf-8", "replace")) if outcome.body else ""


def _problem_faults(
    expectation: Expectation, outcome: StepResult, variables: Mapping[str, Any]
) -> list[str]:
    expected = expectation.problem or ProblemSpec(code="internal_error")
    status = STATUS[expected.code]
    if outcome.status != status:
        return [_status_fault([status], outcome)]
    faults: list[Mismatch] = []
    media = outcome.header("content-type")
    faults += mismatches({"$media_type": MEDIA_TYPE}, media, "Content-Type")
    shape = {
        "status": {"$equals": status},
        "title": {"$type": "string"},
        "detail": {"$type": "string"},
        "code": expected.code,
    }
    faults += mismatches(shape, outcome.json())
    if expected.detail is not None:
        detail = substitute(expected.detail, variables)
        faults += mismatches(detail, resolve(outcome.json(), "/detail"), "/detail")
    return [str(fault) for fault in faults]


def _order_faults(expected: Expectation, outcome: StepResult, _: Mapping[str, Any]) -> list[str]:
    pattern = expected.events or ""
    names = " ".join(event.name for event in outcome.events)
    tokens = "".join(_NAME.sub(lambda m: f"(?:{m[0]} )", part) for part in pattern.split())
    if re.fullmatch(tokens, f"{names} " if names else ""):
        return []
    return [f"expected the events {pattern}, got {abbreviate(names)}"]


def _id_faults(_: Expectation, outcome: StepResult, __: Mapping[str, Any]) -> list[str]:
    ids = [event.id for event in outcome.events if event.name == "change"]
    if not ids or not all(id_.isascii() and id_.isdigit() for id_ in ids):
        return [f"expected change events with decimal ids, got the ids {abbreviate(ids)}"]
    rising = all(int(a) < int(b) for a, b in itertools.pairwise(ids))
    return [] if rising else [f"expected rising ids, got {abbreviate(ids)}"]


def _body_faults(
    expected: Expectation, outcome: StepResult, variables: Mapping[str, Any]
) -> list[str]:
    expected_body = content(substitute(_plain(expected.body), variables))
    if outcome.body == expected_body:
        return []
    start = next(
        (n for n, (a, b) in enumerate(zip(expected_body, outcome.body, strict=False)) if a != b),
        min(len(expected_body), len(outcome.body)),
    )
    excerpts = f"{expected_body[start : start + 40]!r} and {outcome.body[start : start + 40]!r}"
    sizes = f"expected {len(expected_body)} bytes, got {len(outcome.body)}"
    return [f"{sizes}; they differ from byte {start}: {excerpts}"]


_SUBJECTS: dict[str, Callable[[Expectation, StepResult, Mapping[str, Any]], list[str]]] = {
    "status": _status_faults,
    "statuses": lambda e, o, variables: _match_faults(
        e.statuses, o.statuses, variables, "statuses"
    ),
    "problem": _problem_faults,
    "header": _header_faults,
    "event": _event_faults,
    "events": _order_faults,
    "ids": _id_faults,
    "ended": _ended_faults,
    "body": _body_faults,
    "fold": _fold_faults,
    "text": lambda e, o, variables: _match_faults(
        e.text, o.body.decode("utf-8", "replace"), variables
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
