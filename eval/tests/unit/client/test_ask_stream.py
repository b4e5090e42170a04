"""The state machine of an ask stream, event by event."""

import json
from typing import Any

import pytest

from memconform.client.ask_stream import AskResult, AskStream
from memconform.client.failures import ContractViolatedError, DaemonFailedError
from memconform.contract.ask import AskRequest
from memconform.contract.wire import Mode

_CHUNK = {"chunkId": "d#0", "documentId": "d", "path": "p", "score": 1, "text": "t"}
_TRACE = {
    "requestedMode": "auto",
    "effectiveMode": "bm25",
    "embedderUsed": False,
    "reranked": False,
    "fellBackToBm25": False,
    "candidateK": 50,
    "searchMs": 1,
}
_RETRIEVE = ("retrieve", {"chunks": [_CHUNK], "topK": 5, "mode": "bm25", "trace": _TRACE})
_DELTA = ("answer_delta", {"text": "hi "})
_CITATION = ("citation", {"chunkId": "d#0", "path": "p", "title": "p", "score": 1.0})
_ERROR = ("error", {"code": "c", "message": "m"})
_DONE = ("done", {"ok": True})
_FAILED = ("done", {"ok": False})


def _traced(chunks: list[Any] | None = None, **trace: object) -> tuple[str, Any]:
    """A retrieve event with another trace."""
    merged = _TRACE | trace
    data = {"chunks": [_CHUNK] if chunks is None else chunks, "topK": 5}
    return "retrieve", data | {"mode": merged["effectiveMode"], "trace": merged}


def _run(*events: tuple[str, Any]) -> AskResult:
    stream = AskStream(AskRequest(question="what is it?", top_k=5, mode=Mode.AUTO))
    for name, data in events:
        stream.feed(name, data if isinstance(data, str) else json.dumps(data))
    return stream.finish()


def test_complete_stream_yields_its_answer() -> None:
    done = ("done", {"ok": True, "answer": "hi hi ", "usage": {"tokens": 3}, "new": 1})
    answer = _run(_RETRIEVE, _DELTA, ("heartbeat", "{"), _DELTA, _CITATION, _CITATION, done)
    assert answer.text == "hi hi "
    assert [cited.chunk_id for cited in answer.citations] == ["d#0", "d#0"]


@pytest.mark.parametrize(
    ("events", "code"),
    [
        ((_DELTA,), "event_order"),
        ((_CITATION,), "event_order"),
        ((_DONE,), "event_order"),
        ((_RETRIEVE, _RETRIEVE), "event_order"),
        ((_RETRIEVE, _CITATION, _DELTA), "event_order"),
        ((_RETRIEVE, _ERROR, _DELTA), "event_order"),
        ((_RETRIEVE, _ERROR, _CITATION), "event_order"),
        ((_RETRIEVE, _ERROR, _ERROR), "event_order"),
        ((_RETRIEVE, _DONE, _DONE), "event_after_done"),
        ((_RETRIEVE, _DONE, ("heartbeat", "{}")), "event_after_done"),
        ((_RETRIEVE, _ERROR, _DONE), "ok_after_error"),
        ((_RETRIEVE, _FAILED), "failed_without_error"),
        ((_RETRIEVE, _DELTA, ("done", {"ok": True, "answer": "ho"})), "answer_mismatch"),
        ((_RETRIEVE, ("citation", _CITATION[1] | {"chunkId": "e#0"})), "bad_citation"),
        ((_RETRIEVE, ("answer_delta", '{"text": ')), "bad_event"),
        ((_RETRIEVE, ("answer_delta", {"text": 1})), "bad_event"),
        ((_RETRIEVE, ("error", {"code": "c", "message": ""})), "bad_event"),
        ((("retrieve", _RETRIEVE[1] | {"trace": None}),), "bad_event"),
        ((("retrieve", _RETRIEVE[1] | {"chunks": [_CHUNK, _CHUNK]}),), "bad_ranking"),
        ((_RETRIEVE, _DONE), "no_answer"),
        ((_RETRIEVE, ("answer-delta", {"text": "typo"}), _DONE), "no_answer"),
        ((_RETRIEVE, ("answer_delta", {"text": " "}), _DONE), "no_answer"),
        ((_RETRIEVE, ("answer_delta", {"text": "\u200b\u2063\ufeff\u3164"}), _DONE), "no_answer"),
        ((_RETRIEVE, ("answer_delta", '{"text": "a", "text": "b"}'), _DONE), "duplicate_key"),
        ((_RETRIEVE, ("citation", _CITATION[1] | {"path": "other"})), "bad_citation"),
        ((("retrieve", _RETRIEVE[1] | {"topK": 9}),), "bad_trace"),
        ((("retrieve", _RETRIEVE[1] | {"mode": "semantic"}),), "bad_trace"),
        ((_traced(requestedMode="bm25"),), "bad_trace"),
        ((_traced(effectiveMode="semantic"),), "bad_trace"),
        ((_traced(effectiveMode="auto"),), "bad_trace"),
        ((_traced(effectiveMode="hybrid-rerank", embedderUsed=True),), "bad_trace"),
        ((_traced(effectiveMode="hybrid", embedderUsed=True, fellBackToBm25=True),), "bad_trace"),
        ((_traced([], effectiveMode="semantic", embedderUsed=True),), "bad_ranking"),
        ((_traced([_CHUNK | {"text": ""}]),), "bad_ranking"),
        ((), "stream_ended_early"),
        ((_RETRIEVE,), "stream_ended_early"),
        ((_RETRIEVE, _DELTA, _CITATION), "stream_ended_early"),
    ],
)
def test_reports_contract_violations(events: tuple[tuple[str, Any], ...], code: str) -> None:
    with pytest.raises(ContractViolatedError) as caught:
        _run(*events)
    assert caught.value.code == code


@pytest.mark.parametrize("before", [(), (_RETRIEVE,), (_RETRIEVE, _DELTA)])
def test_reported_error_is_a_daemon_failure(before: tuple[tuple[str, Any], ...]) -> None:
    with pytest.raises(DaemonFailedError, match="c: m"):
        _run(*before, _ERROR, _FAILED)


def test_an_error_of_another_shape_still_says_what_failed() -> None:
    said = {"message": "the quota of the upstream is spent"}
    with pytest.raises(ContractViolatedError, match="code: missing; the daemon reports") as caught:
        _run(_RETRIEVE, ("error", said), _FAILED)
    assert said["message"] in caught.value.message
    with pytest.raises(ContractViolatedError) as caught:
        _run(_RETRIEVE, ("error", {"message": "x" * 10_000}), _FAILED)
    assert len(caught.value.message) < 400


def test_error_without_done_is_still_an_error() -> None:
    with pytest.raises(DaemonFailedError):
        _run(_RETRIEVE, _ERROR)


def test_more_chunks_than_requested_are_rejected() -> None:
    chunks = [_CHUNK | {"chunkId": f"d#{n}"} for n in range(6)]
    with pytest.raises(ContractViolatedError, match="6 chunks, but topK is 5"):
        _run(("retrieve", _RETRIEVE[1] | {"chunks": chunks}))


def test_rising_scores_are_rejected() -> None:
    chunks = [_CHUNK, _CHUNK | {"chunkId": "d#1", "score": 1.5}]
    with pytest.raises(ContractViolatedError, match="score rises"):
        _run(("retrieve", _RETRIEVE[1] | {"chunks": chunks}))
