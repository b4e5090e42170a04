"""A success that says that it is a failure is one, wherever it says so."""

import json
from typing import Any

import pytest

from memconform.client.ask_stream import AskStream
from memconform.client.failures import DaemonFailedError
from memconform.contract.ask import AskRequest, Done
from memconform.contract.core import SearchResponse
from memconform.contract.dialect import Dialect
from memconform.contract.reported_failure import FAILURES, failure_in, reported_failure

_RESPONSE: dict[str, Any] = {"Result": {"Hits": [], "Took": 3}, "Debug": {"Served": "bm25"}}


@pytest.mark.parametrize(
    "extra",
    [
        {"error": "boom"},
        {"Error": {"Message": "boom"}},
        {"Errors": ["boom"]},
        {"_error": "boom"},
        {"Exception": "boom"},
        {"Success": False},
        {"Ok": False},
        {"timedOut": True},
        {"timed_out": True},
        {"Status": 500, "Title": "Internal"},
        {"Code": 503},
        {"status_code": 400},
        {"Result": {"Hits": [], "Error": "boom"}},
        {"Debug": {"Served": "bm25", "inner": {"error": "boom"}}},
    ],
)
def test_a_failure_is_found_at_any_depth_and_in_any_spelling(extra: dict[str, Any]) -> None:
    assert reported_failure(_RESPONSE | extra) is not None
    assert failure_in(json.dumps(_RESPONSE | extra).encode(), SearchResponse) is not None


@pytest.mark.parametrize(
    "extra",
    [
        {},
        {"error": None, "errors": [], "exception": ""},
        {"ok": True, "success": True, "status": 200, "code": 0},
        {"timedOut": False, "timed_out": "soon", "partial": True},
        # A number of another kind, and words, are no statuses.
        {"code": 40_000, "status": "indexed", "status_code": True},
        # The error of an element is not that of the message, and the keys of users are their own.
        {"items": [{"error": "boom"}], "metadata": {"error": "boom"}},
        {"text": 'the log says "error": 5'},
    ],
)
def test_what_is_no_failure_is_none(extra: dict[str, Any]) -> None:
    assert reported_failure(_RESPONSE | extra) is None
    assert failure_in(json.dumps(_RESPONSE | extra).encode(), SearchResponse) is None


def test_a_key_that_the_contract_names_means_what_the_contract_says() -> None:
    assert failure_in(b'{"ok": false}', Done) is None
    assert failure_in(b'{"ok": false, "inner": {"ok": false}}', Done) == '{"ok": false}'


def test_a_dialect_says_what_reports_a_failure() -> None:
    failures = ["state=failed", "result.fault", "broken=1"]
    assert reported_failure({"State": "failed"}, failures) == '{"state": "failed"}'
    assert reported_failure({"Result": {"Fault": "boom"}}, failures) == '"boom"'
    assert reported_failure({"broken": 1}, failures) == '{"broken": 1}'
    for harmless in ({"state": "ready"}, {"fault": "x"}, {"broken": True}, {"error": "x"}):
        assert reported_failure(harmless, failures) is None
    assert reported_failure({"error": "x", "status": 500}, []) is None
    assert list(FAILURES) == Dialect(name="x").failures


@pytest.mark.parametrize("dialect", [None, Dialect(name="x", ignored_events=["ping"])])
def test_an_error_inside_an_event_that_means_nothing_is_a_failure(dialect: Dialect | None) -> None:
    """An overloaded model was reported in a ping, and the answer that followed scored as wrong."""
    stream = AskStream(AskRequest(question="Why?"), dialect=dialect)
    stream.feed("ping", "still here")
    stream.feed("ping", '{"at": 5}')
    with pytest.raises(DaemonFailedError, match="ping: the answer reports a failure"):
        stream.feed("ping", '{"Error": "model overloaded"}')


def test_an_error_inside_an_event_of_the_contract_is_a_failure() -> None:
    stream = AskStream(AskRequest(question="Why?"))
    with pytest.raises(DaemonFailedError, match="retrieve: the answer reports a failure"):
        stream.feed("retrieve", '{"chunks": [], "error": "index unavailable"}')
