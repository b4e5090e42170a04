"""The checks of response shapes, which apply to every case."""

import json
from typing import Any

import pytest

from memconform.conformance.exchange_shapes import wire_faults
from memconform.conformance.routes import route_of
from memconform.conformance.step_result import Event, StepResult

JSON = "application/json"
PROBLEM_TYPE = "application/problem+json"
PROBLEM = {"status": 404, "title": "t", "detail": "d", "code": "not_found"}
TRACE = {
    "requestedMode": "bm25", "effectiveMode": "bm25", "embedderUsed": False, "reranked": False,
    "fellBackToBm25": False, "candidateK": 50, "searchMs": 1.0,
}  # fmt: skip
CHUNK = {"chunkId": "a#0", "documentId": "a", "path": "a.md", "score": 1.0, "text": "x"}


def _faults(
    line: str, status: int, body: Any, media: str, sent: Any = None, *, expects_success: bool = True
) -> list[str]:
    outcome = StepResult(line, status=status, headers=[("content-type", media)], ended="end")
    outcome.body = body if isinstance(body, bytes) else json.dumps(body).encode()
    sent_bytes = b"" if sent is None else json.dumps(sent).encode()
    return [
        f"{f.blame}: {f.message}"
        for f in wire_faults(outcome, sent_bytes, expects_success=expects_success)
    ]


def _search(chunks: list[Any], **trace: Any) -> list[str]:
    body = {"chunks": chunks, "tookMs": 1.0, "trace": TRACE | trace}
    sent = {"query": "x", "mode": "bm25", "topK": 2}
    return _faults("POST /v1/brains/b/search", 200, body, JSON, sent)


def test_good_answers_have_no_fault() -> None:
    assert _faults("GET /healthz", 200, {"ok": True}, JSON) == []
    assert _faults("GET /nothing", 404, PROBLEM, PROBLEM_TYPE) == []
    assert _faults("PUT /v1/brains/b/documents?path=a", 204, b"", "") == []
    assert _search([CHUNK]) == []


@pytest.mark.parametrize(
    ("line", "status", "body", "media", "message"),
    [
        ("GET /healthz", 200, {"ok": True}, "text/html", "Content-Type"),
        ("GET /healthz", 200, {"ok": 1}, JSON, "ok"),
        ("GET /healthz", 201, {"ok": True}, JSON, "the contract requires 200"),
        ("GET /nothing", 404, PROBLEM, JSON, "not application/problem+json"),
        ("GET /nothing", 400, PROBLEM, PROBLEM_TYPE, "has status 404"),
        ("GET /x", 404, PROBLEM | {"code": "conflict"}, PROBLEM_TYPE, "does not match"),
        ("GET /x", 404, {"code": "not_found"}, PROBLEM_TYPE, "the problem body"),
        ("GET /x", 404, b"<html>", PROBLEM_TYPE, "the problem body"),
        ("GET /version", 405, PROBLEM, PROBLEM_TYPE, "405 without Allow"),
        ("GET /version", 500, PROBLEM, PROBLEM_TYPE, "an error of the daemon itself"),
        ("HEAD /v1/brains/b/documents?path=a", 404, PROBLEM, PROBLEM_TYPE, "has a body"),
        ("PUT /v1/brains/b/documents?path=a", 204, {"ok": 1}, JSON, "a body, but none is allowed"),
        ("GET /v1/brains/b/documents/read?path=a", 200, b"x", "text/html", "octet-stream"),
        ("GET /v1/brains/b/documents", 200, {"items": None}, JSON, "items"),
        ("GET /v1/brains/b/events", 200, b"", JSON, "text/event-stream"),
    ],
)
def test_reports_invalid_responses(
    line: str, status: int, body: Any, media: str, message: str
) -> None:
    faults = _faults(line, status, body, media)
    assert any(message in fault and fault.startswith("daemon") for fault in faults), faults


def test_reports_invalid_rankings() -> None:
    rising = [CHUNK, CHUNK | {"chunkId": "b#0", "score": 2.0}]
    assert "rises" in _search(rising)[0]
    assert "twice" in _search([CHUNK, CHUNK])[0]
    assert "topK is 2" in _search([CHUNK | {"chunkId": f"{n}#0"} for n in range(3)])[0]
    assert "effectiveMode semantic without" in _search([CHUNK], effectiveMode="semantic")[0]


def test_null_for_an_empty_ranking_is_a_fault() -> None:
    """The client forgives it; conform does not (core.search.shape)."""
    body = {"chunks": None, "tookMs": 1.0, "trace": TRACE}
    [fault] = _faults("POST /v1/brains/b/search", 200, body, JSON, {"query": "x", "mode": "bm25"})
    assert fault.startswith("daemon: ")
    assert "chunks" in fault


def test_blames_the_case_if_it_expects_an_invalid_request_to_succeed() -> None:
    line, body = "POST /v1/brains/b/search", {"chunks": [], "tookMs": 1.0, "trace": TRACE}
    sent = {"query": "x", "mode": "bm25", "topK": 0}
    [expected] = _faults(line, 200, body, JSON, sent)
    [unexpected] = _faults(line, 200, body, JSON, sent, expects_success=False)
    assert expected.startswith("case: an invalid request was accepted")
    assert unexpected.startswith("daemon: an invalid request was accepted")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("change", {"kind": "created", "path": "a", "when": "2026-01-01T00:00:00Z"}, ""),
        ("change", {"kind": "made", "path": "a", "when": "2026-01-01T00:00:00Z"}, "kind"),
        ("change", {"kind": "created", "path": "a", "when": "today"}, "when is 'today'"),
        ("change", {"kind": "renamed", "path": "a", "when": "2026-01-01T00:00:00Z"}, "old_path"),
        ("ready", "yes", "ready has the data"),
        ("telemetry", {}, ""),
    ],
)
def test_reports_invalid_change_events(name: str, data: Any, message: str) -> None:
    text = data if isinstance(data, str) else json.dumps(data)
    headers = [("content-type", "text/event-stream")]
    outcome = StepResult("GET /v1/brains/b/events", status=200, headers=headers)
    outcome.events = [Event(name, text, "1", 0)]
    faults = wire_faults(outcome, b"", expects_success=True)
    assert [message in fault.message for fault in faults] == ([True] if message else [])


def test_reports_ask_events_out_of_order() -> None:
    headers = [("content-type", "text/event-stream")]
    outcome = StepResult("POST /v1/brains/b/ask", status=200, headers=headers, ended="end")
    outcome.events = [Event("answer_delta", '{"text": "x"}', "", 0)]
    [fault] = wire_faults(outcome, b'{"question": "x"}', expects_success=True)
    assert "answer_delta came before retrieve" in fault.message


def test_routes_are_found_by_method_and_target() -> None:
    assert getattr(route_of("GET", "/v1/brains/b/documents?dir=a"), "name", "") == "listDocuments"
    assert getattr(route_of("HEAD", "/v1/brains/b/documents?path=a"), "name", "") == "hasDocument"
    assert route_of("GET", "/v1/brains/b/documents/") is None
    assert route_of("GET", "/healthz/") is None


def test_a_500_is_no_fault_where_the_case_expects_it() -> None:
    problem = PROBLEM | {"status": 500, "code": "internal_error"}
    outcome = StepResult("GET /healthz", status=500, ended="end")
    outcome.headers = [("content-type", PROBLEM_TYPE)]
    outcome.body = json.dumps(problem).encode()
    assert wire_faults(outcome, b"", expects_success=False, expected=[409, 500]) == []
    assert wire_faults(outcome, b"", expects_success=False, expected=[409]) != []
