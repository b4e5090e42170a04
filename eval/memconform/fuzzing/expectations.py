"""Completes the oracle's predictions with what the contract leaves open, to compare them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from memconform.conformance.pointer import MISSING, Missing
from memconform.contract.problem import MEDIA_TYPE
from memconform.contract.wire import JsonValue
from memconform.fuzzing.normalized_answer import ProgramAnswer, normalize_value
from memconform.fuzzing.program_runner import fill_brain
from memconform.fuzzing.programs import BRAIN, RESTARTED, RESTARTS, Call, Program
from memconform.fuzzing.shape_checks import event_fault, response_fault
from memconform.oracle.daemon import OracleDaemon
from memconform.oracle.predictions import ANYTHING, Anything, Exactly, Omittable, Option, Prediction
from memconform.oracle.search import Providers
from memconform.oracle.store import Change

_BRAIN_ID = "mc-oracle"
_PLAIN_PROBLEM = {"status", "code"}


@dataclass(frozen=True, slots=True)
class ExpectedAnswer:
    """The permitted answer that is nearest to the actual one."""

    answer: ProgramAnswer
    actual: ProgramAnswer
    rule: str
    """The rule that the expected answer follows."""
    diverges: bool = False
    """Whether the brain is not known any more after it."""


def expect(
    program: Program, actual: Sequence[ProgramAnswer], providers: Providers
) -> list[ExpectedAnswer]:
    """Return what the contract expects for each call, then for the events, if it listens.

    Values that the contract leaves open are those of `actual`.
    """
    oracle = OracleDaemon(providers)
    oracle.create(_BRAIN_ID)
    first = oracle.brain(_BRAIN_ID)
    expected = [
        _expect_call(oracle, call, answer)
        for call, answer in zip(program.calls, actual, strict=False)
    ]
    if program.listens and first is not None:
        changes = first.documents.changes
        expected.append(_expect_events(changes, actual[len(program.calls)]))
    return expected


def _expect_call(oracle: OracleDaemon, call: Call, actual: ProgramAnswer) -> ExpectedAnswer:
    if call.route in RESTARTS:
        return ExpectedAnswer(ProgramAnswer(RESTARTED), actual, "core.ingest.durable")
    target = call.target.replace(BRAIN, _BRAIN_ID)
    body = call.body if isinstance(call.body, bytes) else fill_brain(call.body, _BRAIN_ID)
    prediction = oracle.predict(call.method, target, body, call.headers)
    if prediction is None:
        return ExpectedAnswer(actual, actual, "")
    option = option_of(prediction, call, actual.status)
    reaches = actual.status == option.status and not actual.failure
    if reaches:
        option.apply()
    fault = response_fault(call.route, actual, option.detail) if reaches else ""
    changes = call.method not in ("GET", "HEAD") and call.route not in ("search", "ask")
    return ExpectedAnswer(
        nearest_answer(option, actual),
        replace(actual, fault=fault),
        option.rule,
        diverges=changes and not reaches,
    )


def option_of(prediction: Prediction, call: Call, status: int | None) -> Option:
    """The predicted response with a status, as the call's method has it."""
    option = prediction.option_for(status)
    return replace(option, media=None, body=b"") if call.method == "HEAD" else option


def nearest_answer(option: Option, actual: ProgramAnswer) -> ProgramAnswer:
    """Complete a predicted response with the open values of the actual one."""
    headers = dict(actual.headers)
    for name, words in option.headers.items():
        headers[name] = tuple(sorted({*headers.get(name, ()), *words}))
    is_bare = option.media is None
    return ProgramAnswer(
        option.status,
        actual.media if is_bare else option.media or "",
        tuple(sorted(headers.items(), key=lambda item: _rank(item[0], actual))),
        _body(option, actual),
    )


def _rank(name: str, actual: ProgramAnswer) -> tuple[int, str]:
    names = [known for known, _ in actual.headers]
    return (names.index(name) if name in names else len(names)), name


def _body(option: Option, actual: ProgramAnswer) -> JsonValue:
    if isinstance(option.body, bytes):
        return {"bytes": option.body.hex()}
    given = actual.body if actual.status == option.status else MISSING
    if option.media == MEDIA_TYPE and isinstance(option.body, dict):
        found = given.get("keys") if isinstance(given, dict) else None
        keys = {*(found if isinstance(found, list) else ()), *_PLAIN_PROBLEM, "title", "detail"}
        return {**option.body, "keys": sorted(keys)}
    return normalize_value(_completed(option.body, given), _BRAIN_ID)


class _Left:
    """A value that is missing from the actual answer too, and may be."""


_LEFT = _Left()

_CLOSED_KEYS = ("title", "description", "old_path", "reason")
"""Optional keys that a response has only if a request gave them."""


def _completed(expected: Any, actual: Any) -> Any:  # noqa: ANN401 - JSON with markers
    """Replace open values by the actual ones, and add keys that no rule forbids."""
    if isinstance(expected, Anything):
        return _LEFT if isinstance(actual, Missing) else actual
    if isinstance(expected, Omittable):
        return _LEFT if isinstance(actual, Missing) else expected.value
    if isinstance(expected, Exactly):
        return expected.value
    if isinstance(expected, dict):
        given = actual if isinstance(actual, dict) else {}
        known = {k: _completed(v, given.get(k, MISSING)) for k, v in expected.items()}
        others = {k: v for k, v in given.items() if k not in expected and k not in _CLOSED_KEYS}
        return {k: v for k, v in {**known, **others}.items() if v is not _LEFT}
    if isinstance(expected, list):
        items = actual if isinstance(actual, list) else []
        padded = [*items, *[MISSING] * (len(expected) - len(items))]
        pairs = zip(expected, padded, strict=False)
        completed = [_completed(one, two) for one, two in pairs]
        return [None if item is _LEFT else item for item in completed]
    return expected


def _expect_events(changes: Sequence[Change], actual: ProgramAnswer) -> ExpectedAnswer:
    events: list[Any] = [["ready", "ok", ANYTHING]]
    for change in changes:
        data: dict[str, Any] = {"kind": change.kind, "path": change.path}
        if change.old_path is not None:
            data["old_path"] = change.old_path
        if change.reason is not None:
            data["reason"] = change.reason
        events.append(["change", data, "rising"])
    headers = {"cache-control": frozenset({"no-store"})}
    option = Option(200, "events.change", "text/event-stream", events, headers)
    fault = event_fault(actual.content) if actual.status == option.status else ""
    return ExpectedAnswer(nearest_answer(option, actual), replace(actual, fault=fault), option.rule)
