"""Causes: one name for one defect, whatever the values, and another one for another defect."""

import json
import random
import re
import string
from typing import Any

import pytest

from memconform.conformance.case import Expectation
from memconform.conformance.causes import (
    Fault,
    cause_of,
    place_name,
    start_cause,
    status_fault,
    step_name,
)
from memconform.conformance.exchange_shapes import wire_faults
from memconform.conformance.expectations import evaluate
from memconform.conformance.step_result import Event, StepResult, StreamEnd
from memconform.errors import DaemonError

ERROR = "application/problem+json"
BRAIN = "/v1/brains/mc-case-1"
SEARCH = "POST /v1/brains/{brain}/search"
TRACE = {
    "requestedMode": "bm25", "effectiveMode": "bm25", "embedderUsed": False, "reranked": False,
    "fellBackToBm25": False, "candidateK": 50, "searchMs": 1.0,
}  # fmt: skip
CHUNK = {"chunkId": "a#0", "documentId": "a", "path": "a.md", "score": 1.0, "text": "x"}
FOUND = {"chunks": [CHUNK], "tookMs": 1.0, "trace": TRACE}
ASKED = {"query": "x", "mode": "bm25", "topK": 2}
PROBLEM = {"status": 404, "title": "t", "detail": "d", "code": "not_found"}


def test_a_check_of_what_the_upstream_got_concerns_no_unknown_route() -> None:
    sent = StepResult("GET /_control/requests", 200, body=b'{"requests": []}')
    expected = Expectation.model_validate(
        {"at": "/requests", "is": {"$contains": {"kind": "chat"}}}
    )
    [fault] = evaluate(expected, sent, {}).details
    assert cause_of(sent, fault) == "upstream: GET /_control/requests: requests is empty"
    assert step_name(StepResult("GET /_controls")) == "unknown route"


def _response(
    line: str = f"POST {BRAIN}/search",
    status: int | None = 200,
    body: Any = None,
    media: str = "application/json",
    *,
    ended: StreamEnd = "end",
    failure: str | None = None,
) -> StepResult:
    outcome = StepResult(line, status=status, headers=[("content-type", media)], ended=ended)
    outcome.body = body if isinstance(body, bytes) else json.dumps(body).encode()
    outcome.failure = failure
    return outcome


def _wire(outcome: StepResult, sent: Any = None, **more: Any) -> list[str]:
    faults = wire_faults(outcome, json.dumps(sent or ASKED).encode(), expects_success=True, **more)
    return [fault.cause for fault in faults]


def _checked(expectation: Any, outcome: StepResult) -> list[str]:
    result = evaluate(Expectation.model_validate(expectation), outcome, {})
    return list(dict.fromkeys(cause_of(outcome, fault) for fault in result.details))


def _without(key: str, of: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in of.items() if name != key}


def _events(*events: tuple[str, Any], line: str = f"GET {BRAIN}/events") -> StepResult:
    outcome = StepResult(line, status=200, headers=[("content-type", "text/event-stream")])
    outcome.ended = "end"
    outcome.events = [
        Event(name, data if isinstance(data, str) else json.dumps(data), "1", 0)
        for name, data in events
    ]
    return outcome


@pytest.mark.parametrize(
    ("outcome", "causes"),
    [
        (_response(body=_without("trace", FOUND)), [f"{SEARCH}: missing key trace"]),
        (
            _response(body=FOUND | {"trace": _without("searchMs", TRACE)}),
            [f"{SEARCH}: missing key trace.searchMs"],
        ),
        (_response(body=FOUND | {"chunks": None}), [f"{SEARCH}: chunks is null"]),
        (
            _response(body=FOUND | {"chunks": {}}),
            [f"{SEARCH}: chunks is an object, expected an array"],
        ),
        (
            _response(body=FOUND | {"chunks": [_without("score", CHUNK)] * 9}),
            [f"{SEARCH}: missing key chunks.*.score"],
        ),
        (_response(body=FOUND | {"tookMs": -1}), [f"{SEARCH}: tookMs is out of range"]),
        (
            _response(body=FOUND | {"trace": TRACE | {"candidateK": 1.5}}),
            [f"{SEARCH}: trace.candidateK is not a whole number"],
        ),
        (_response(body=FOUND | {"chunks": [CHUNK] * 2}), [f"{SEARCH}: chunks has a chunk twice"]),
        (
            _response(body=FOUND | {"trace": TRACE | {"requestedMode": "hybrid"}}),
            [f"{SEARCH}: trace.requestedMode is hybrid, expected bm25"],
        ),
        (_response(body=b"{"), [f"{SEARCH}: the body is not JSON"]),
        (_response(status=201, body=FOUND), [f"{SEARCH}: status 201, expected 200"]),
        (
            _response(body=FOUND, media="text/html; charset=x"),
            [f"{SEARCH}: Content-Type text/html, expected application/json"],
        ),
        (
            _response(status=500, body=PROBLEM | {"status": 500, "code": "internal_error"},
                      media=ERROR),
            [f"{SEARCH}: status 500, expected 200"],
        ),
        (
            _response("GET /nothing", 404, PROBLEM),
            [f"error responses with status 404: Content-Type application/json, expected {ERROR}"],
        ),
        (
            _response(status=404, body=_without("code", PROBLEM), media=ERROR),
            ["error responses with status 404: missing key code"],
        ),
        (
            _response(status=404, body=PROBLEM | {"code": "gone-7"}, media=ERROR),
            ["error responses with status 404: an unknown code with another status"],
        ),
        (
            _response(body=FOUND, failure="RemoteProtocolError: 7 of 9 bytes"),
            [f"{SEARCH}: the response is incomplete"],
        ),
        (
            _events(("change", {"kind": "created", "path": "a", "when": "today"})),
            ["GET /v1/brains/{brain}/events: event change: when has the wrong format"],
        ),
        (
            _events(("change", {"kind": "created", "when": "2026-01-01T00:00:00Z"})),
            ["GET /v1/brains/{brain}/events: event change: missing key path"],
        ),
    ],
)  # fmt: skip
def test_each_kind_of_wire_fault_has_its_cause(outcome: StepResult, causes: list[str]) -> None:
    assert _wire(outcome) == causes


@pytest.mark.parametrize(
    ("sent", "cause"),
    [
        ({"topK": 0}, "accepts topK out of range"),
        ({"topK": "x"}, "accepts topK of a wrong type"),
        ({"filters": {"colour": 1}}, "accepts an unknown key in filters"),
        ({"filters": {"size": 1}}, "accepts an unknown key in filters"),
        ({"mode": "fast"}, "accepts an invalid mode"),
        ({"questionDate": "now"}, "accepts questionDate in a wrong format"),
        ({"query": None}, "accepts a request without query"),
    ],
)
def test_accepted_requests_are_named_by_what_is_not_validated(sent: Any, cause: str) -> None:
    outcome = _response(body=FOUND)
    faults = wire_faults(outcome, json.dumps(ASKED | sent).encode(), expects_success=False)
    assert f"{SEARCH}: {cause}" in [fault.cause for fault in faults]


@pytest.mark.parametrize(
    ("expectation", "outcome", "cause"),
    [
        (200, _response(status=409), "status 409, expected 200"),
        ({"status": [200, 201]}, _response(status=409), "status 409, expected 200"),
        ("not_found", _response(status=200), "status 200, expected 404"),
        (200, _response(status=None, ended="open", failure="no complete response within 10 s"),
         "no response in time"),
        (200, _response(status=None, ended="cut", failure="ConnectError: x"), "no connection"),
        (200, _response(status=None, ended="cut", failure="ReadError"), "no response"),
        ({"at": "/trace/searchMs", "is": 1}, _response(body={"trace": {}}),
         "missing key trace.searchMs"),
        ({"at": "/trace/searchMs", "is": 1}, _response(body={}), "missing key trace"),
        ({"at": "/trace/searchMs", "is": 1}, _response(body={"trace": None}), "trace is null"),
        ({"is": {"a": 1}}, _response(body=b"<html>"), "the body is not JSON"),
        ({"at": "/chunks", "is": []}, _response(body={"chunks": None}), "chunks is null"),
        ({"at": "/chunks/0/path", "is": "a"}, _response(body={"chunks": []}), "chunks is empty"),
        ({"at": "/chunks/0/path", "is": "a"}, _response(body=FOUND),
         "wrong value at chunks.*.path"),
        ({"at": "/chunks/*/path", "is": ["b"]}, _response(body=FOUND),
         "wrong value at chunks.*.path"),
        ({"at": "/chunks/*/path", "is": ["a.md", "b"]}, _response(body=FOUND),
         "chunks has too few items"),
        ({"at": "/chunks/*/path", "is": []}, _response(body=FOUND), "chunks has too many items"),
        ({"at": "/chunks/*/path", "is": {"$contains": "b"}}, _response(body=FOUND),
         "chunks has other items"),
        ({"at": "/chunks/0/score", "is": {"$range": [2, 3]}}, _response(body=FOUND),
         "chunks.*.score is out of range"),
        ({"at": "/chunks/0/path", "is": {"$absent": True}}, _response(body=FOUND),
         "unexpected key chunks.*.path"),
        ({"at": "/chunks/0/path", "is": 7}, _response(body=FOUND),
         "chunks.*.path is a string, expected a number"),
        ({"at": "/trace/effectiveMode", "is": "hybrid"}, _response(body=FOUND),
         "trace.effectiveMode is bm25, expected hybrid"),
        ({"at": "/trace/reranked", "is": True}, _response(body=FOUND),
         "trace.reranked is false, expected true"),
        ({"header": "etag", "is": "x"}, _response(), "no header etag"),
        ({"body": "axe"}, _response(body=b"ox"), "the body has other bytes"),
        ({"took_ms": {"$range": [9, 10]}}, _response(), "took_ms is out of range"),
        ({"ended": "end"}, _response(ended="cut"), "ended is cut, expected end"),
        ({"events": "ready change"}, _events(("ready", "ok"), ("ping", "ok")),
         "wrong events: ready"),
        ({"event": "change", "at": "/0/kind", "is": "updated"},
         _events(("change", {"kind": "created"})),
         "event change: kind is created, expected updated"),
        ({"event": "change", "at": "/*/path", "is": ["a"]}, _events(("change", {"path": "b"})),
         "event change: wrong value at path"),
        ({"event": "change", "at": "/*/path", "is": ["a", "b"]},
         _events(("change", {"path": "a"})), "events change has too few items"),
        ({"event": "change", "is": [{"kind": "created"}]}, _events(), "no event change"),
        ({"ids": "rising"}, _events(("change", "{}"), ("change", "{}")),
         "ids of change events do not rise"),
    ],
)  # fmt: skip
def test_each_kind_of_failed_expectation_has_its_cause(
    expectation: Any, outcome: StepResult, cause: str
) -> None:
    assert _checked(expectation, outcome) == [f"{step_name(outcome)}: {cause}"]


def test_a_check_and_the_wire_name_one_defect_alike() -> None:
    outcome = _response(body=FOUND | {"trace": _without("effectiveMode", TRACE)})
    assert _checked({"at": "/trace/effectiveMode", "is": "bm25"}, outcome) == _wire(outcome)
    taken = _response("POST /v1/brains", 200, {})
    assert _checked("conflict", taken) == _wire(taken, {"brainId": "b"}, expected=(409,))
    problem = _response(status=404, body=_without("code", PROBLEM), media=ERROR)
    assert _checked("not_found", problem) == _wire(problem)
    late = _events(("change", {"kind": "created", "when": "2026-01-01T00:00:00Z"}))
    assert _checked({"event": "change", "at": "/0/path", "is": "a"}, late) == _wire(late)


def test_a_route_that_is_missing_has_one_cause_whatever_was_expected() -> None:
    missing = _response(f"POST {BRAIN}/ingest/batch", 404, PROBLEM, ERROR)
    [cause] = {
        cause_of(missing, fault)
        for codes in ((200,), (400,), (413,))
        for fault in [_status(missing, codes)]
    }
    assert cause == "POST /v1/brains/{brain}/ingest/batch: status 404, never valid here"


def _status(outcome: StepResult, codes: tuple[int, ...]) -> Fault:
    return status_fault("", outcome, codes, "mc-case-1")


def test_requests_outside_the_contract_share_a_name() -> None:
    assert step_name(StepResult("DELETE /healthz")) == "wrong method"
    assert step_name(StepResult("PATCH /v1/brains/x/search?a=1")) == "wrong method"
    assert step_name(StepResult("GET /nothing/7")) == "unknown route"
    assert step_name(StepResult("raw: GET /healthz HTTP/1.1")) == "GET /healthz"
    assert step_name(StepResult("disk: read brains/x/a.md")) == "disk: read"


def test_a_start_is_named_by_its_settings_without_their_secrets() -> None:
    env = {"JB_LLM_PROVIDER": "fake", "JB_AUTH_TOKEN": "conform-token-1"}
    assert start_cause(DaemonError("x", code="daemon_exited", hint="x"), env) == (
        "the daemon does not start with JB_AUTH_TOKEN, JB_LLM_PROVIDER=fake: daemon_exited"
    )


def test_places_have_no_indices() -> None:
    assert place_name(["chunks", 12, "a~1b"]) == "chunks.*.a/b"


_EXPECTATIONS: list[Any] = [
    {"at": "/chunks/0/path", "is": "other"},
    {"at": "/chunks/*/text", "is": {"$contains": "other"}},
    {"at": "/tookMs", "is": {"$range": [-2, -1]}},
    {"at": "/missing/0/key", "is": 1},
    {"text": "other"},
    {"header": "content-type", "is": {"$media_type": "text/plain"}},
    201,
    "conflict",
]


@pytest.mark.parametrize("seed", range(60))
def test_values_never_split_a_cause(seed: int) -> None:
    """Responses that differ in ids, numbers and texts only have the same causes."""
    rng = random.Random(seed)

    def word() -> str:
        return "".join(rng.choices(string.ascii_lowercase + string.digits + "-é'\"", k=9))

    def response() -> StepResult:
        chunk = CHUNK | {"chunkId": word(), "path": f"{word()}.md", "score": -rng.random()}
        chunks = [chunk | {"chunkId": f"{n}", "text": word()} for n in range(rng.randint(3, 9))]
        body = {"chunks": chunks, "tookMs": rng.random() * 99, "trace": _without("searchMs", TRACE)}
        brain = re.sub(r"[^a-z0-9]", "x", word())
        return _response(f"POST /v1/brains/mc-{brain}/search", 200, body)

    first, second = response(), response()
    assert _wire(first) == _wire(second) == [f"{SEARCH}: missing key trace.searchMs"]
    for expectation in _EXPECTATIONS:
        causes = _checked(expectation, first)
        assert causes
        assert causes == _checked(expectation, second)


def test_faults_of_different_kinds_never_share_a_cause() -> None:
    responses = [
        _response(body=_without("chunks", FOUND)),
        _response(body=FOUND | {"chunks": None}),
        _response(body=FOUND | {"chunks": "x"}),
        _response(body=FOUND | {"chunks": [CHUNK | {"path": None}]}),
        _response(status=500, body=PROBLEM | {"status": 500, "code": "internal_error"},
                  media=ERROR),
        _response(f"POST {BRAIN}/ask", 500, PROBLEM | {"status": 500, "code": "internal_error"},
                  ERROR),
    ]  # fmt: skip
    causes = [cause for response in responses for cause in _wire(response)]
    assert len(set(causes)) == len(responses) == len(causes)
