"""Expectations of a case, evaluated against results of steps."""

import json
from typing import Any

import pytest

from memconform.conformance.case import Expectation
from memconform.conformance.expectations import evaluate
from memconform.conformance.step_result import Event, StepResult

PROBLEM = {"status": 404, "title": "Not found", "detail": "no brain x", "code": "not_found"}


def _answer(status: int, body: Any = None, media: str = "application/json") -> StepResult:
    return StepResult(
        "GET /x",
        status=status,
        headers=[("Content-Type", media), ("Allow", "GET"), ("Allow", "POST")],
        body=json.dumps(body).encode(),
        took_ms=5,
        ended="end",
    )


def _stream(*events: tuple[str, Any], ended: Any = "end") -> StepResult:
    read = [
        Event(name, data if isinstance(data, str) else json.dumps(data), str(n), n)
        for n, (name, data) in enumerate(events)
    ]
    return StepResult("GET /events", status=200, events=read, ended=ended)


ANSWER = _stream(
    ("retrieve", {"chunks": []}),
    ("answer_delta", {"text": "one "}),
    ("answer_delta", {"text": "two"}),
    ("done", {"ok": True}),
)
CHANGES = _stream(("ready", "ok"), ("change", {"path": "a"}), ("change", {"path": "b"}))

CASES: list[tuple[Any, StepResult, bool]] = [
    (200, _answer(200), True),
    (200, _answer(201), False),
    ({"status": [200, 204]}, _answer(204), True),
    ("not_found", _answer(404, PROBLEM, "application/problem+json"), True),
    ("not_found", _answer(404, PROBLEM), False),
    ("not_found", _answer(404, PROBLEM | {"status": 400}, "application/problem+json"), False),
    ("not_found", _answer(404, PROBLEM | {"code": "conflict"}, "application/problem+json"), False),
    ("not_found", _answer(404, {"code": "not_found"}, "application/problem+json"), False),
    ("not_found", _answer(409, PROBLEM, "application/problem+json"), False),
    (
        {"problem": {"code": "not_found", "detail": {"$contains": "brain"}}},
        _answer(404, PROBLEM, "application/problem+json"),
        True,
    ),
    (
        {"problem": {"code": "not_found", "detail": {"$contains": "ops[3]"}}},
        _answer(404, PROBLEM, "application/problem+json"),
        False,
    ),
    ({"header": "allow", "is": "GET, POST"}, _answer(405), True),
    ({"header": "etag", "is": {"$absent": True}}, _answer(405), True),
    ({"header": "etag", "is": {"$regex": "."}}, _answer(405), False),
    ({"is": {"a": 1}}, _answer(200, {"a": 1}), True),
    ({"at": "/a/*/b", "is": [1, 2]}, _answer(200, {"a": [{"b": 1}, {"b": 2}]}), True),
    ({"is": None}, _answer(200, None), True),
    ({"is": {"a": 1}}, StepResult("x", status=200, body=b"{"), False),
    ({"text": {"$contains": "x"}}, StepResult("x", body=b"axe"), True),
    ({"body": "axe"}, StepResult("x", body=b"axe"), True),
    ({"body": {"base64": "AP8="}}, StepResult("x", body=b"\x00\xff"), True),
    ({"body": {"size": {"bytes": 9}}}, StepResult("x", body=b"x" * 9), False),
    ({"body": "axe"}, StepResult("x", body=b"axes"), False),
    ({"took_ms": {"$range": [0, 10]}}, _answer(200), True),
    ({"took_ms": {"$range": [0, 4]}}, _answer(200), False),
    ({"events": "retrieve answer_delta+ citation* done"}, ANSWER, True),
    ({"events": "retrieve answer_delta done"}, ANSWER, False),
    ({"events": "retrieve (answer_delta answer_delta)+ done"}, ANSWER, True),
    ({"events": "retrieve answer_delta+"}, ANSWER, False),
    ({"events": "retrieve"}, _stream(), False),
    ({"fold": "one two"}, ANSWER, True),
    ({"fold": "one"}, ANSWER, False),
    ({"event": "done", "is": [{"ok": True}]}, ANSWER, True),
    ({"event": "done", "at": "/0/ok", "is": False}, ANSWER, False),
    ({"event": "error", "is": []}, ANSWER, True),
    ({"event": "ready", "is": ["ok"]}, CHANGES, True),
    ({"ids": "rising"}, CHANGES, True),
    ({"ids": "rising"}, ANSWER, False),
    ({"ended": "end"}, ANSWER, True),
    ({"ended": "end"}, _stream(ended="cut"), False),
    ({"statuses": [401, None]}, StepResult("raw", statuses=[401, None]), True),
    ({"statuses": [401, 200]}, StepResult("raw", statuses=[401, None]), False),
    (200, StepResult("x", failure="ConnectError"), False),
]


@pytest.mark.parametrize(("expectation", "outcome", "holds"), CASES)
def test_expectations(expectation: Any, outcome: StepResult, holds: bool) -> None:  # noqa: FBT001 - a table's column
    result = evaluate(Expectation.model_validate(expectation), outcome, {})
    assert result.holds is holds
    assert bool(result.faults) is not holds


def test_ids_must_be_decimal_and_rise() -> None:
    for ids in (["2", "1"], ["1", "1"], ["a", "b"], ["", ""]):
        events = [Event("change", "{}", id_, 0) for id_ in ids]
        outcome = StepResult("x", events=events)
        assert not evaluate(Expectation.model_validate({"ids": "rising"}), outcome, {}).holds


def test_a_non_preferred_alternative_is_a_warning() -> None:
    either = Expectation.model_validate({"any_of": [400, 404]})
    assert evaluate(either, _answer(400), {}).non_preferred == ""
    assert "better status 400" in evaluate(either, _answer(404), {}).non_preferred
    assert not evaluate(either, _answer(500), {}).holds


def test_variables_are_filled_in() -> None:
    expected = Expectation.model_validate({"at": "/id", "is": "${id}"})
    assert evaluate(expected, _answer(200, {"id": 7}), {"id": 7}).holds
    assert not evaluate(expected, _answer(200, {"id": 7}), {"id": 8}).holds


def test_a_body_mismatch_reports_the_first_differing_byte() -> None:
    result = evaluate(
        Expectation.model_validate({"body": "abcd"}), StepResult("x", body=b"abxd"), {}
    )
    assert "they differ from byte 2" in result.faults[0]
