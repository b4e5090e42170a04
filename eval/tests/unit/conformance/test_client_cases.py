"""The cases of clients, the broken clients, and how a call is judged. No client runs."""

import ast
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from memconform.conformance.clients.broken_clients import broken_clients, patch_client
from memconform.conformance.clients.case import TEXTS, ClientCall, Item, Response
from memconform.conformance.clients.catalog import ClientVariant, client_catalog
from memconform.conformance.clients.driver import Failure, Observed
from memconform.conformance.clients.explanation import explain_client_case
from memconform.conformance.clients.seen_request import SeenRequest
from memconform.conformance.clients.verdicts import CallRecord, call_faults, same
from memconform.conformance.clients.wire import (
    CANONICAL,
    SEARCH,
    encode_item,
    expected_events,
    line_ends,
)
from memconform.conformance.rules import rules
from memconform.errors import UsageError

SDK = Path(__file__).parents[4] / "sdks" / "py"
RULES = [rule for rule in rules() if rule.startswith("client.")]
VARIANTS = client_catalog()


def test_the_cases_are_as_many_as_the_documents_say() -> None:
    assert len({entry.base for entry in VARIANTS}) >= 100
    assert len(VARIANTS) >= 300
    assert len(broken_clients()) >= 60


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_of_clients_has_a_case_and_a_broken_client(rule: str) -> None:
    assert any(rule in entry.case.rules for entry in VARIANTS)
    assert any(mutant.rule == rule for mutant in broken_clients())


def test_each_broken_client_differs_from_the_client_in_one_place_and_compiles(
    tmp_path: Path,
) -> None:
    for mutant in broken_clients():
        patch_client(SDK, mutant, tmp_path / mutant.id)
        for edit in mutant.mutation.source["py"]:
            ast.parse((tmp_path / mutant.id / edit.file).read_text())


def test_a_broken_client_whose_text_has_moved_is_named(tmp_path: Path) -> None:
    mutant = broken_clients()[0]
    source = tmp_path / "sdk" / "client" / "memory_client"
    source.mkdir(parents=True)
    for edit in mutant.mutation.source["py"]:
        (tmp_path / "sdk" / edit.file).write_text("")
    with pytest.raises(UsageError, match=mutant.id):
        patch_client(tmp_path / "sdk", mutant, tmp_path / "copy")


def _standard_events(stream: bytes) -> list[tuple[str, Any]]:
    """The events of a whole stream, by the steps of the HTML standard, with JSON as data."""
    # Only an event that no client knows may have bytes that are not UTF-8.
    text = stream.decode("utf-8", "replace").removeprefix("\ufeff")
    events: list[tuple[str, str]] = []
    name, data = "", list[str]()
    *lines, _ = re.split("\r\n|\r|\n", text)
    for line in lines:
        if not line:
            if data:
                events.append((name or "message", "\n".join(data)))
            name, data = "", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            data.append(value)
        elif field == "event":
            name = value
    return [
        (name, json.loads(value))
        for name, value in events
        if name in ("retrieve", "answer_delta", "citation", "error", "done")
    ]


def _is_whole(entry: ClientVariant) -> bool:
    calls = entry.case.calls
    return all(c.call == "ask" and c.expected_outcome == "whole" for c in calls)


@pytest.mark.parametrize(
    "entry", [e for e in VARIANTS if _is_whole(e) and "client.done" not in e.case.rules],
    ids=lambda entry: entry.id,
)  # fmt: skip
def test_what_a_case_expects_is_what_the_standard_reads_in_its_bytes(entry: ClientVariant) -> None:
    for response in entry.case.responses:
        if not response.is_stream or response.status != 200:
            continue
        ends = line_ends(response)
        parts = [encode_item(item, response, "memory", ends) for item in response.items()]
        stream = ("\ufeff".encode() if response.bom else b"") + b"".join(parts)
        read = _standard_events(stream)
        expected = expected_events(response, "memory")
        names = [name for name, _ in read]
        last = names.index("done") + 1 if "done" in names else len(names)
        assert [name for name, _ in read[:last]] == [name for name, _ in expected]
        assert all(same(wanted, got) for (_, wanted), (_, got) in zip(expected, read, strict=False))


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
def test_the_streams_of_other_services_have_the_text_of_the_answer(wire: Any) -> None:
    response, texts = Response(), []
    stream = b"".join(
        encode_item(item, response, wire, line_ends(response)) for item in response.items()
    )
    for line in stream.decode().splitlines():
        if line.startswith("data: {"):
            data = json.loads(line.removeprefix("data: "))
            if wire == "openai":
                texts += [choice["delta"].get("content", "") for choice in data["choices"]]
            elif data["type"] == "content_block_delta":
                texts.append(data["delta"]["text"])
    assert "".join(texts) == "".join(TEXTS)
    assert stream.endswith(b"data: [DONE]\n\n") is (wire == "openai")


def test_every_case_that_the_documents_name_exists() -> None:
    """docs/CLIENTS.md named cases that had been renamed."""
    text = (SDK.parents[1] / "docs" / "CLIENTS.md").read_text(encoding="utf-8")
    known = {entry.id for entry in VARIANTS} | {entry.base for entry in VARIANTS}
    named = re.findall(r"`(client-[a-z0-9-]+(?:\[[^\]*]+\])?)[^`]*`", text)
    assert len(named) > 5
    assert [name for name in named if name not in known] == []


def test_every_case_can_be_explained() -> None:
    text = "\n".join(explain_client_case(entry, "here:1") for entry in VARIANTS)
    assert "rule client.end: " in text
    assert "#requests: " in text


GOOD: list[tuple[str, Any]] = expected_events(Response(), "memory")


def _record(
    *,
    call: ClientCall | None = None,
    response: Response | None = None,
    events: Sequence[tuple[str, Any]] = GOOD,
    ended: Any = "ok",
    failure: Failure | None = None,
    result: Any = None,
    requests: Sequence[SeenRequest] | None = None,
    elsewhere: Sequence[SeenRequest] = (),
) -> CallRecord:
    observed = Observed(list(events), ended, result, failure, ended_at=90.0)
    seen = [_request()] if requests is None else requests
    response = response or Response()
    return CallRecord(
        call or ClientCall(), [response] * len(seen), observed, seen, elsewhere, "memory"
    )


def _request(**changes: Any) -> SeenRequest:
    values: dict[str, Any] = {
        "connection": 1,
        "method": "POST",
        "target": "/v1/brains/brain/ask",
        "headers": [("authorization", "Bearer a")],
        "at": 0.0,
        "body": b'{"question": "a"}',
    }
    return SeenRequest(**(values | changes))


def _causes(record: CallRecord, slot: str) -> list[str]:
    return [fault.cause for fault in call_faults(record)[slot]]


def test_a_good_answer_has_no_fault() -> None:
    assert not any(call_faults(_record()).values())


def _call(**values: Any) -> ClientCall:
    return ClientCall.model_validate(values)


FAILED = Failure(kind="http", status=500, code="internal")


@pytest.mark.parametrize(
    ("record", "cause"),
    [
        (_record(ended="silent"), "the call does not end"),
        (_record(ended="error", failure=FAILED), "fails with http where nothing is wrong"),
        (_record(call=_call(error="cut")), "reports success in place of an error cut"),
        (
            _record(call=_call(error="cut"), ended="error", failure=FAILED),
            "fails with http in place of cut",
        ),
        (
            _record(
                call=_call(error={"kind": "http", "status": 502}), ended="error", failure=FAILED
            ),
            "the error has not the status of the response",
        ),
        (
            _record(call=_call(error={"kind": "http", "code": "x"}), ended="error", failure=FAILED),
            "the error has not the code of the daemon",
        ),
        (
            _record(call=_call(outcome="cancelled", cancel_after=1), ended="ok"),
            "reports success of an answer that was cancelled",
        ),
        (
            _record(requests=[_request(unobserved=2)], ended="error", failure=FAILED),
            "events are not yielded as they come",
        ),
    ],
)
def test_an_outcome_that_must_not_be_is_found(record: CallRecord, cause: str) -> None:
    assert _causes(record, "outcome") == [cause]


def test_a_client_that_ends_its_request_before_its_report_is_read_is_no_late_one() -> None:
    """It was one in 626 cases, on a busy machine, of a client that passes them all."""
    assert not _causes(_record(requests=[_request(unobserved=4)]), "outcome")


def test_an_error_in_place_of_an_outcome_is_accepted_where_a_case_says_so() -> None:
    allowed = _call(or_error={"kind": ["http"]})
    assert not _causes(_record(call=allowed, ended="error", failure=FAILED), "outcome")
    other = Failure(kind="cut")
    assert _causes(_record(call=allowed, ended="error", failure=other), "outcome") == [
        "fails with cut in place of http"
    ]


@pytest.mark.parametrize(
    ("events", "cause"),
    [
        (GOOD[:-1], "events are lost"),
        ([*GOOD, GOOD[-1]], "an event is yielded that was not sent, or behind the end"),
        ([GOOD[1], *GOOD], "an event is yielded that was not sent, or behind the end"),
        (
            [*GOOD, ("error", {"code": "x"})],
            "an error is yielded, which must be how the call fails",
        ),
        (
            [GOOD[0], ("answer_delta", {"text": "no"}), *GOOD[2:]],
            "an event has other data than was sent",
        ),
    ],
)
def test_events_that_are_not_those_that_were_sent_are_found(events: Any, cause: str) -> None:
    assert _causes(_record(events=events), "events") == [cause]


def test_the_first_events_of_an_answer_that_failed_are_enough() -> None:
    record = _record(call=_call(error="cut"), events=GOOD[:2], ended="error", failure=FAILED)
    assert not _causes(record, "events")


def test_another_body_is_found() -> None:
    call, response = _call(call="search"), Response(to="search")
    assert not _causes(_record(call=call, response=response, result=SEARCH), "result")
    other = {**SEARCH, "tookMs": 2}
    assert _causes(_record(call=call, response=response, result=other), "result")


@pytest.mark.parametrize(
    ("requests", "seen", "cause"),
    [
        ({"count": [1]}, [_request(), _request()], "a call is repeated that must not be"),
        ({"count": [2]}, [_request()], "a call is not repeated"),
        ({}, [_request(), _request()], "a call is repeated that must not be"),
        ({"method": "POST"}, [_request(method="GET")], "a request with another method"),
        ({"target": ["/a"]}, [_request()], "a request to another path"),
        (
            {"header": {"authorization": None}},
            [_request()],
            "the header authorization is not as it must be",
        ),
        (
            {"header": {"authorization": "bearer b"}},
            [_request()],
            "the header authorization is not as it must be",
        ),
        (
            {"body": {"question": "b"}},
            [_request()],
            "the body of a request is not what was given",
        ),
        ({"ended": True}, [_request()], "the request goes on after the call has ended"),
        (
            {"ended": True},
            [_request(ended_at=99.0)],
            "the request goes on after the call has ended",
        ),
        (
            {"count": [2], "gap_ms": 900},
            [_request(answered_at=1.0), _request(at=1.5)],
            "a call is repeated before Retry-After",
        ),
        ({}, [_request(method="invalid", target="bad")], "a request is not HTTP"),
    ],
)
def test_requests_that_must_not_be_are_found(
    requests: dict[str, Any], seen: list[SeenRequest], cause: str
) -> None:
    record = _record(call=_call(requests=requests), requests=seen)
    assert _causes(record, "requests") == [cause]


def test_what_reaches_another_origin_is_found() -> None:
    token = _call(requests={"elsewhere": "no-token"})
    assert _causes(_record(call=token, elsewhere=[_request()]), "requests") == [
        "the token goes to another origin"
    ]
    assert not _causes(_record(call=token, elsewhere=[_request(headers=[])]), "requests")


@pytest.mark.parametrize(
    ("expected", "got", "is_same"),
    [
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1}, {"a": 1, "b": None}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": 1, "x-b": 2}, {"a": 1}, True),
        ({"a": 1, "b": 2}, {"a": 1}, False),
        ({"a": 1, "b": None}, {"a": 1}, True),
        ({"a": {"b": [1, {"c": 2}]}}, {"a": {"b": [1, {"c": 3}]}}, False),
        (9007199254740993, 9007199254740992, False),
        (9007199254740993, 9007199254740992.0, False),
        ([1, 2], [1], False),
        ("a", None, False),
    ],
)
def test_values_are_compared_as_json(expected: Any, got: Any, *, is_same: bool) -> None:
    assert same(expected, got) is is_same


def test_a_part_of_a_stream_is_one_thing() -> None:
    with pytest.raises(ValueError, match="exactly one part"):
        Item.model_validate({"delta": "a", "raw": "b"})
    assert Item.model_validate("done").event == "done"
    assert CANONICAL["done"]["ok"] is True
