"""Cases speak the contract to a daemon that speaks a dialect."""

import hashlib
import json
from typing import Any

import pytest

from memconform.conformance.case import Expectation
from memconform.conformance.case_context import CheckResults, CheckState
from memconform.conformance.causes import Fault
from memconform.conformance.exchange_shapes import wire_faults
from memconform.conformance.expectations import ExpectationResult
from memconform.conformance.known_failures import choice_entry
from memconform.conformance.step_result import Event, StepResult
from memconform.conformance.translation import Translation, without_gaps
from memconform.contract.dialect import Dialect
from memconform.contract.dialect_keys import DialectError
from tests.fakes.foreign import DIALECT

_FOREIGN = Dialect.model_validate(DIALECT)
_TRANSLATION = Translation(_FOREIGN)
_BRAIN = "/v1/brains/mc-1"


@pytest.mark.parametrize(
    ("line", "own"),
    [
        (f"GET {_BRAIN}", "GET /stores/mc-1"),
        (f"PUT {_BRAIN}/documents?path=a%2Fb.md", "PUT /stores/mc-1/docs?path=kb/a.txt%2Fb.md.txt"),
        (f"PUT {_BRAIN}/documents?path=../x", "PUT /stores/mc-1/docs?path=../x"),
        (f"PUT {_BRAIN}/documents?path=", "PUT /stores/mc-1/docs?path="),
        (f"GET {_BRAIN}/documents?dir=n", "GET /stores/mc-1/docs?dir=kb/n.txt"),
        (f"GET {_BRAIN}/documents", "GET /stores/mc-1/docs?dir=kb"),
        ("GET /nowhere", "GET /nowhere"),
        (f"PUT {_BRAIN}/documents?path=a/", "PUT /stores/mc-1/docs?path=kb/a.txt/"),
        (f"PUT {_BRAIN}/documents?path=%zz", "PUT /stores/mc-1/docs?path=kb/%zz"),
        (f"GET {_BRAIN}/documents?glob=*.md", "GET /stores/mc-1/docs?glob=*.md.txt&dir=kb"),
        (
            f"GET {_BRAIN}/documents/stat?path=a/b",
            f"GET {_BRAIN}/documents/stat?path=kb/a.txt/b.txt",
        ),
        (
            f"GET {_BRAIN}/documents/stat?path=a.b/c.md",
            f"GET {_BRAIN}/documents/stat?path=kb/a.b.txt/c.md.txt",
        ),
        ("DELETE /healthz", "DELETE /healthz"),
        (f"PATCH {_BRAIN}", "PATCH /stores/mc-1"),
        (f"GET {_BRAIN}/search?x=1", "GET /stores/mc-1/query?x=1"),
    ],
)
def test_a_request_line_is_translated(line: str, own: str) -> None:
    assert _TRANSLATION.request(line, None) == (own, None)


def test_a_body_is_translated_and_what_is_not_of_the_contract_passes() -> None:
    def sent(body: object) -> Any:
        encoded = json.dumps(body).encode()
        return json.loads(_TRANSLATION.request(f"POST {_BRAIN}/search", encoded)[1] or b"")

    body = {"query": "red", "topK": "ten", "filters": {"paths": ["a.md"]}, "other": 1}
    only = {"paths": ["kb/a.md.txt"]}
    assert sent(body) == {"text": "red", "limit": "ten", "only": only, "other": 1}
    assert sent([1]) == [1]
    raw = b'{"query": '
    assert _TRANSLATION.request(f"POST {_BRAIN}/search", raw)[1] == raw


def test_a_route_that_the_dialect_lacks_is_not_applicable() -> None:
    with pytest.raises(DialectError, match="no route ingest_file") as caught:
        _TRANSLATION.request(f"POST {_BRAIN}/ingest/file", b"{}")
    assert caught.value.code == "not_in_dialect"


@pytest.mark.parametrize(
    ("routes", "line", "own"),
    [
        ({"health": "GET /up"}, "DELETE /healthz", "DELETE /up"),
        ({"version": False}, "POST /version", None),
        # One of the two routes at the path is elsewhere, and which of them decides `Allow`?
        ({"create_brain": "POST /stores"}, "PUT /v1/brains", None),
        (
            {"create_brain": "POST /stores", "list_brains": "GET /stores"},
            "PUT /v1/brains",
            "PUT /stores",
        ),
        ({"create_brain": "POST /stores", "list_brains": False}, "PUT /v1/brains", "PUT /stores"),
        # The method is right in the dialect.
        ({"search": "GET /stores/{brain}/query"}, f"GET {_BRAIN}/search", None),
        ({"search": "PUT /stores/{brain}/query"}, f"GET {_BRAIN}/search", None),
        ({"search": "POST /v1/brains/{brain}"}, f"GET {_BRAIN}/search", None),
    ],
)
def test_a_wrong_method_goes_to_the_path_of_the_dialect(
    routes: dict[str, Any], line: str, own: str | None
) -> None:
    translation = Translation(Dialect.model_validate({"routes": routes}))
    if own is not None:
        assert translation.request(line, None) == (own, None)
        return
    with pytest.raises(DialectError) as caught:
        translation.request(line, None)
    assert caught.value.code == "not_in_dialect"


def test_the_request_line_of_raw_bytes_is_translated() -> None:
    end = b" HTTP/1.1\r\nHost: h\r\n\r\n"
    health = Translation(Dialect.model_validate({"routes": {"health": "GET /up"}}))
    assert health.raw(b"GET /healthz" + end) == b"GET /up" + end
    assert health.raw(b"DELETE /healthz" + end) == b"DELETE /up" + end
    brain = _BRAIN.encode()
    assert _TRANSLATION.raw(b"GET " + brain + end) == b"GET /stores/mc-1" + end
    for other in (b"\x16\x03", b"GET /nowhere" + end, b"4\r\nThe \r\n", b"GET /healthz HTTP/9\r\n"):
        assert _TRANSLATION.raw(other) == other


@pytest.mark.parametrize(
    "request_",
    [
        b"GET /version HTTP/1.1\r\n\r\n",
        # Another status than the contract's 204, and another key than `question`.
        f"PUT {_BRAIN}/documents?path=a HTTP/1.1\r\n\r\n".encode(),
        f'POST {_BRAIN}/ask HTTP/1.1\r\n\r\n{{"question": "x"}}'.encode(),
    ],
)
def test_raw_bytes_that_a_dialect_cannot_say_are_not_applicable(request_: bytes) -> None:
    with pytest.raises(DialectError) as caught:
        _TRANSLATION.raw(request_)
    assert caught.value.code == "not_in_dialect"


def _outcome(label: str, body: object, status: int = 200) -> StepResult:
    received = json.dumps(body).encode()
    return StepResult(
        label,
        status=status,
        headers=[("content-type", "application/json")],
        body=_TRANSLATION.answer(label, received),
        received=received,
        dialect=_FOREIGN,
        ended="end",
    )


_HIT = {"ChunkId": "1", "Path": "kb/a.md.txt", "Score": 1.0, "Body": "x"}
_SEARCH = f"POST {_BRAIN}/search"
_ASKED = b'{"query": "x", "mode": "bm25"}'


@pytest.mark.parametrize(
    ("body", "causes"),
    [
        ({"Result": {"Hits": [_HIT]}, "Debug": {"Served": "bm25"}}, []),
        ({"Result": {"Hits": [_HIT]}}, []),
        ({"Result": {"Hits": None}, "Debug": {"Served": "bm25"}}, ["chunks is null"]),
        ({"Result": {"Hits": [_HIT]}, "Debug": {}}, ["missing key trace.effectiveMode"]),
        (
            {"Result": {"Hits": [{**_HIT, "Path": None}]}, "Debug": {"Served": "bm25"}},
            ["chunks.*.path is null"],
        ),
        ({"Result": {}, "Debug": {"Served": "bm25"}}, ["missing key chunks"]),
    ],
)
def test_the_wire_check_knows_what_a_dialect_declares_and_nothing_more(
    body: dict[str, Any], causes: list[str]
) -> None:
    faults = wire_faults(_outcome(_SEARCH, body), _ASKED, expects_success=True)
    route = "POST /v1/brains/{brain}/search"
    assert [fault.cause for fault in faults] == [f"{route}: {cause}" for cause in causes]


def test_events_are_translated_and_checked_in_the_daemons_words() -> None:
    label = f"POST {_BRAIN}/ask"
    sent = [("hits", {"Chunks": [_HIT]}), ("token", {"Text": "x"}), ("end", {"Ok": True})]
    events = []
    for name, data in sent:
        text = json.dumps(data)
        events.append(Event(*_TRANSLATION.event(label, name, text), "", 0.0, (name, text)))
    assert [event.name for event in events] == ["retrieve", "answer_delta", "done"]
    assert json.loads(events[0].data)["chunks"][0]["path"] == "a.md"
    outcome = StepResult(
        label,
        status=200,
        headers=[("content-type", "text/event-stream")],
        events=events,
        dialect=_FOREIGN,
        ended="end",
    )
    asked = b'{"question": "x"}'
    assert wire_faults(outcome, asked, expects_success=True) == []
    outcome.events[1] = Event(
        "answer_delta", '{"text": null}', "", 0.0, ("token", '{"Text": null}')
    )
    assert wire_faults(outcome, asked, expects_success=True) != []


def test_a_status_of_the_dialect_is_the_contracts() -> None:
    assert _TRANSLATION.status("POST /v1/brains", 200) == 201
    assert _TRANSLATION.status("POST /v1/brains", 202) == 202
    assert _TRANSLATION.status(f"GET {_BRAIN}", 200) == 200


def test_an_expectation_about_an_unknown_value_is_not_applicable() -> None:
    outcome = _outcome(f"GET {_BRAIN}", {"Store": {"Id": "mc-1"}})
    gap, fault = Fault("no documents", "missing key documents"), Fault("b", "brainId is null")
    rest, place = without_gaps(ExpectationResult((gap, fault)), outcome)
    assert (rest.details, place) == ((fault,), "documents")
    outcome.dialect = None
    rest, place = without_gaps(ExpectationResult((gap,)), outcome)
    assert (rest.details, place) == ((gap,), "")


def test_a_key_that_the_dialect_declares_is_no_gap() -> None:
    outcome = _outcome(_SEARCH, {"Result": {"Hits": []}})
    for cause, place in (
        ("missing key trace.effectiveMode", "trace.effectiveMode"),
        ("missing key chunks.*.documentId", "chunks.*.documentId"),
        ("missing key chunks", ""),
        ("missing key chunks.*.path", ""),
    ):
        assert without_gaps(ExpectationResult((Fault("m", cause),)), outcome)[1] == place


@pytest.mark.parametrize(
    "filters", [{"scope": "raw"}, {"project": "p1"}, {"scope": "raw", "tags": ["red"]}]
)
def test_filters_by_the_contracts_folders_are_not_applicable(filters: dict[str, Any]) -> None:
    """The daemon has documents below `kb/`, which no scope selects."""
    body = json.dumps({"query": "red", "filters": filters}).encode()
    with pytest.raises(DialectError) as caught:
        _TRANSLATION.request(f"POST {_BRAIN}/search", body)
    assert caught.value.code == "not_in_dialect"
    plain = Translation(Dialect.model_validate({"keys": "any"}))
    assert plain.request(f"POST {_BRAIN}/search", body)[1] == body


def test_a_choice_of_a_dialect_is_known_by_its_cause_and_never_stale() -> None:
    entry = choice_entry("wrong method: *", "one answer for all", "mine")
    assert entry.applies_to("mine", "any-case#wire")
    assert not entry.applies_to("other", "any-case#wire")
    assert entry.explains("wrong method: status 404, expected 405")
    assert not entry.explains("POST /v1/brains: status 404, expected 405")
    assert entry.kind == "flaky"


@pytest.mark.parametrize("status", [404, 500])
def test_what_an_error_response_lacks_is_no_gap(status: int) -> None:
    outcome = _outcome(f"GET {_BRAIN}", {"message": "nothing here"}, status)
    gap = Fault("no documents", "missing key documents")
    assert without_gaps(ExpectationResult((gap,)), outcome) == (ExpectationResult((gap,)), "")


def test_a_gap_survives_the_attempts_of_an_until_step() -> None:
    last, results = CheckResults(), CheckResults()
    last.states["slot"] = CheckState(Expectation(status=200), gap="documents")
    results.merge(last)
    assert results.states["slot"].gap == "documents"


def test_a_key_in_two_spellings_is_a_fault_of_the_wire() -> None:
    dialect = Dialect.model_validate({"keys": "any"})
    received = b'{"Brain_Id": "mc-1", "BrainID": "mc-1"}'
    outcome = StepResult(
        f"GET {_BRAIN}",
        status=200,
        headers=[("content-type", "application/json")],
        body=received,
        received=received,
        dialect=dialect,
    )
    [fault] = wire_faults(outcome, b"", expects_success=True)
    assert fault.cause.endswith("a key is spelt in two ways")


def test_a_token_is_sent_in_the_way_of_the_dialect() -> None:
    auth = {"header": "X-Api-Key", "value": "{token}"}
    translation = Translation(Dialect.model_validate({**DIALECT, "auth": auth}))
    assert translation.headers({"Authorization": "Bearer t", "X": "1"}) == {
        "X-Api-Key": "t",
        "X": "1",
    }
    for other in ("Basic t", "Bearer"):
        assert translation.headers({"Authorization": other}) == {"Authorization": other}


def test_a_scheme_without_a_token_is_sent_as_it_is() -> None:
    """It became `Bearer `, which no client can send: `GET /v1/brains: no response`."""
    plain = Translation(Dialect.model_validate({"keys": "any"}))
    assert plain.headers({"Authorization": "Bearer"}) == {"Authorization": "Bearer"}


def test_ids_that_are_computed_from_paths_are_those_of_the_case() -> None:
    """`documentId` is a hash of the path, which the dialect changes."""
    translation = Translation(Dialect.model_validate({"paths": {"prefix": "kb/"}}))
    own = hashlib.sha256(b"kb/a.md").hexdigest()[:32]
    contract = hashlib.sha256(b"a.md").hexdigest()[:32]
    body = {"chunks": [{"path": "kb/a.md", "documentId": own, "chunkId": f"{own}#1", "score": 1.0}]}
    answer = translation.answer(f"POST {_BRAIN}/search", json.dumps(body).encode())
    [chunk] = json.loads(answer)["chunks"]
    assert (chunk["documentId"], chunk["chunkId"]) == (contract, f"{contract}#1")
    other = {"chunks": [{"path": "kb/a.md", "documentId": "kb/a.md", "chunkId": None}]}
    answer = translation.answer(f"POST {_BRAIN}/search", json.dumps(other).encode())
    [chunk] = json.loads(answer)["chunks"]
    assert (chunk["documentId"], chunk["chunkId"]) == ("kb/a.md", None)
