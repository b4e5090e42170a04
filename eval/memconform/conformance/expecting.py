"""Whether an outcome is what an expectation says. Pure."""

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memconform.conformance.bodies import content
from memconform.conformance.case import Expectation, ProblemSpec
from memconform.conformance.matchers import BadMatcherError, Mismatch, mismatches, shown
from memconform.conformance.pointer import resolve
from memconform.conformance.step_result import StepResult
from memconform.conformance.variables import substitute
from memconform.contract.problem import MEDIA_TYPE, STATUS
from memconform.contract.wire import JsonValue

_NAME = re.compile(r"[a-z_]+")


@dataclass(frozen=True, slots=True)
class ExpectationResult:
    """`faults` is empty where the expectation holds; `second_best` where it is not the preferred
    way."""

    faults: tuple[str, ...] = ()
    non_preferred: str = ""

    @property
    def holds(self) -> bool:
        return not self.faults


def evaluate(
    expected: Expectation, outcome: StepResult, variables: Mapping[str, Any]
) -> ExpectationResult:
    """Hold `outcome` to `expected`, whose variables are filled in first.

    Raises:
        UnknownVariableError: where a variable was never captured.
    """
    if expected.any_of is not None:
        branches = [evaluate(branch, outcome, variables) for branch in expected.any_of]
        held = next((n for n, branch in enumerate(branches) if branch.holds), None)
        if held is None:
            faults = [f"not {describe(b)}" for b in expected.any_of]
            return ExpectationResult((*faults, *branches[0].faults))
        best, taken = expected.any_of[0], expected.any_of[held]
        return ExpectationResult((), f"{describe(taken)}; better {describe(best)}" if held else "")
    try:
        faults = _faults(expected, outcome, variables)
    except BadMatcherError as error:
        # The case's own were checked when it was loaded: this came in with what a daemon answered.
        faults = [f"an answer that reads as a matcher: {error}"]
    if outcome.exchange is not None and outcome.status is None and not faults:
        # What is asked not to be there, is not there in nothing.
        faults = ["expected an answer, got none"]
    if faults and outcome.failure and outcome.failure not in faults:
        faults = [*faults, outcome.failure]
    return ExpectationResult(tuple(faults))


def _faults(expected: Expectation, outcome: StepResult, variables: Mapping[str, Any]) -> list[str]:
    return _SUBJECTS[expected.subject](expected, outcome, variables)


def _matched(
    matcher: JsonValue, got: JsonValue, variables: Mapping[str, JsonValue], where: str = ""
) -> list[str]:
    found = mismatches(substitute(matcher, variables), got)
    return [f"{where}: {fault}" if where else str(fault) for fault in found]


def _status_faults(expected: Expectation, outcome: StepResult, _: Mapping[str, Any]) -> list[str]:
    wanted = expected.status if isinstance(expected.status, list) else [expected.status]
    return [] if outcome.status in wanted else [_status_fault(wanted, outcome)]


def _header_faults(
    expected: Expectation, outcome: StepResult, known: Mapping[str, Any]
) -> list[str]:
    name = expected.header or ""
    return _matched(expected.is_, outcome.header(name), known, name)


def _event_faults(
    expected: Expectation, outcome: StepResult, known: Mapping[str, Any]
) -> list[str]:
    data = [event.value() for event in outcome.events if event.name == expected.event]
    where = f"{expected.event} {expected.at or ''}".rstrip()
    return _matched(expected.is_, resolve(data, expected.at or ""), known, where)


def _ended_faults(expected: Expectation, outcome: StepResult, _: Mapping[str, Any]) -> list[str]:
    wanted = expected.ended if isinstance(expected.ended, list) else [expected.ended]
    if outcome.ended in wanted:
        return []
    return [f"expected that it ends as {' or '.join(map(str, wanted))}, got {outcome.ended!r}"]


def _fold_faults(expected: Expectation, outcome: StepResult, known: Mapping[str, Any]) -> list[str]:
    deltas = [event.value() for event in outcome.events if event.name == "answer_delta"]
    texts = [str(d.get("text", "")) if isinstance(d, dict) else "" for d in deltas]
    return _matched(expected.fold, "".join(texts), known, "the joined deltas")


def _value_faults(
    expected: Expectation, outcome: StepResult, known: Mapping[str, Any]
) -> list[str]:
    at = expected.at or ""
    return _matched(expected.is_, resolve(outcome.json(), at), known, at)


def _plain(given: JsonValue) -> JsonValue:
    return given if isinstance(given, str) else given.model_dump(exclude_none=True)


def _status_fault(wanted: Sequence[int | None], outcome: StepResult) -> str:
    one_of = " or ".join(map(str, wanted))
    if outcome.status is None:
        return f"expected status {one_of}, got no answer"
    return f"expected status {one_of}, got {outcome.status} {_excerpt(outcome)}".rstrip()


def _excerpt(outcome: StepResult) -> str:
    return shown(outcome.body.decode("utf-8", "replace")) if outcome.body else ""


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
    return [f"expected the events {pattern}, got {shown(names)}"]


def _id_faults(_: Expectation, outcome: StepResult, __: Mapping[str, Any]) -> list[str]:
    ids = [event.id for event in outcome.events if event.name == "change"]
    if not ids or not all(each.isascii() and each.isdigit() for each in ids):
        return [f"expected decimal ids of changes, got {shown(ids)}"]
    rising = all(int(a) < int(b) for a, b in itertools.pairwise(ids))
    return [] if rising else [f"expected rising ids, got {shown(ids)}"]


def _body_faults(
    expected: Expectation, outcome: StepResult, variables: Mapping[str, Any]
) -> list[str]:
    wanted = content(substitute(_plain(expected.body), variables))
    if outcome.body == wanted:
        return []
    same = next(
        (n for n, (a, b) in enumerate(zip(wanted, outcome.body, strict=False)) if a != b),
        min(len(wanted), len(outcome.body)),
    )
    parts = f"{wanted[same : same + 40]!r} and {outcome.body[same : same + 40]!r}"
    sizes = f"expected {len(wanted)} bytes, got {len(outcome.body)}"
    return [f"{sizes}; they part at byte {same}: {parts}"]


_SUBJECTS: dict[str, Callable[[Expectation, StepResult, Mapping[str, Any]], list[str]]] = {
    "status": _status_faults,
    "statuses": lambda e, o, known: _matched(e.statuses, o.statuses, known, "statuses"),
    "problem": _problem_faults,
    "header": _header_faults,
    "event": _event_faults,
    "events": _order_faults,
    "ids": _id_faults,
    "ended": _ended_faults,
    "body": _body_faults,
    "fold": _fold_faults,
    "text": lambda e, o, known: _matched(e.text, o.body.decode("utf-8", "replace"), known),
    "took_ms": lambda e, o, known: _matched(e.took_ms, o.took_ms, known, "took_ms"),
    "is": _value_faults,
}


def describe(expected: Expectation) -> str:
    """An expectation in a line."""
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
    given = expected.model_dump(by_alias=True, exclude_unset=True)
    at = given.pop("at", "")
    ((subject, value),) = given.items()
    return f"{at or 'the body'} is {value}" if subject == "is" else f"{subject} {value}"
