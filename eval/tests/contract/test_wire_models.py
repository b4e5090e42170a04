"""The wire models are strict about types, ignore unknown keys and omit unset ones."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from memconform.contract.ask import EVENTS, AskRequest, Done, Retrieve
from memconform.contract.core import (
    Brain,
    IngestFile,
    SearchRequest,
    SearchResponse,
    Trace,
    Version,
    ranks_all,
    trace_fault,
)
from memconform.contract.problem import Problem
from memconform.contract.wire import Mode, Response
from memconform.validation_faults import first_fault

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
_GOOD: list[tuple[type[Response], dict[str, Any]]] = [
    (Version, {"name": "n", "version": "1", "contract": "1"}),
    (Brain, {"brainId": "b", "documents": 1, "chunks": 1, "vectors": 0, "pending": 0}),
    (SearchResponse, {"chunks": [_CHUNK], "tookMs": 1.5, "trace": _TRACE}),
    (Retrieve, {"chunks": [], "topK": 5, "mode": "bm25", "trace": _TRACE}),
    (Done, {"ok": True}),
    (Problem, {"status": 400, "title": "t", "detail": "d", "code": "validation_error"}),
]


@pytest.mark.parametrize(("model", "body"), _GOOD, ids=lambda v: getattr(v, "__name__", ""))
def test_unknown_keys_are_ignored(model: type[Response], body: dict[str, Any]) -> None:
    read = model.model_validate_json(json.dumps(body | {"addedLater": {"x": 1}}))
    written = json.loads(read.model_dump_json(by_alias=True, exclude_none=True))
    assert written.keys() == body.keys()


@pytest.mark.parametrize(("model", "body"), _GOOD, ids=lambda v: getattr(v, "__name__", ""))
def test_every_key_is_required_with_its_type(model: type[Response], body: dict[str, Any]) -> None:
    for key in body:
        missing = {name: value for name, value in body.items() if name != key}
        with pytest.raises(ValidationError) as caught:
            model.model_validate_json(json.dumps(missing))
        assert first_fault(caught.value) == f"{key}: missing"
        for other in (None, {"an": "object"}):
            with pytest.raises(ValidationError):
                model.model_validate_json(json.dumps(body | {key: other}))


@pytest.mark.parametrize("score", ["NaN", "Infinity", '"1"', "true", "null"])
def test_a_score_is_a_finite_number(score: str) -> None:
    chunk = json.dumps(_CHUNK)[:-1].replace('"score": 1', f'"score": {score}') + "}"
    body = json.dumps({"chunks": [], "tookMs": 1, "trace": _TRACE}).replace("[]", f"[{chunk}]")
    with pytest.raises(ValidationError, match=r"chunks\.0\.score"):
        SearchResponse.model_validate_json(body)


def test_requests_are_camel_case_and_omit_unset_keys() -> None:
    search = SearchRequest(query="q", top_k=5, mode=Mode.HYBRID_RERANK, candidate_k=9)
    assert search.to_body() == {"query": "q", "topK": 5, "mode": "hybrid-rerank", "candidateK": 9}
    ask = AskRequest(question="q", top_k=5, mode=Mode.AUTO, question_date="2025-01-01")
    assert ask.to_body() == {
        "question": "q",
        "topK": 5,
        "mode": "auto",
        "questionDate": "2025-01-01",
    }
    document = IngestFile(path="p", content_type="text/plain", content_base64="eA==")
    assert document.to_body().keys() == {"path", "contentType", "contentBase64"}


def test_events_match_the_contract() -> None:
    assert set(EVENTS) == {"retrieve", "answer_delta", "citation", "error", "done"}


@pytest.mark.parametrize(
    ("mode", "query", "expected"),
    [
        (Mode.SEMANTIC, "a word", True),
        (Mode.HYBRID, "\uff57\uff4f\uff52\uff44", True),
        (Mode.HYBRID, "? !", False),
        (Mode.BM25, "a word", False),
        (Mode.CONVERSATION, "a word", True),
        (Mode.CONVERSATION, "? !", False),
    ],
)
def test_which_searches_rank_every_chunk(mode: Mode, query: str, expected: bool) -> None:  # noqa: FBT001
    assert ranks_all(_trace_of(mode, embedder_used=True), query) is expected


def test_a_conversation_by_words_ranks_what_they_reach() -> None:
    assert not ranks_all(_trace_of(Mode.CONVERSATION, embedder_used=False), "a word")


def _trace_of(mode: Mode, *, embedder_used: bool) -> Trace:
    return Trace(
        requested_mode=mode,
        effective_mode=mode,
        embedder_used=embedder_used,
        reranked=False,
        fell_back_to_bm25=False,
        candidate_k=50,
        search_ms=1,
    )


@pytest.mark.parametrize(
    ("reason", "fault"),
    [
        (None, "without reranking"),
        ("", "without reranking"),
        ({"text": "unanimity"}, "without reranking"),
        ("unanimity", None),
        ("empty_candidates", None),
        ("rerank_failed", "without reranking: rerank_failed"),
        ("no_reranker", "without reranking: no_reranker"),
        ("http 503", "without reranking: http 503"),
        ("quota exceeded", "without reranking: quota exceeded"),
    ],
)
def test_skipped_reranking_is_believed_with_a_reason_that_is_known_to_be_a_choice(
    reason: object, fault: str | None
) -> None:
    modes = {"requestedMode": "hybrid-rerank", "effectiveMode": "hybrid-rerank"}
    body = _TRACE | modes | {"embedderUsed": True, "reranked": False, "rerankSkipReason": reason}
    trace = Trace.model_validate_json(json.dumps(body))
    found = trace_fault(trace, Mode.HYBRID_RERANK)
    assert found is None if fault is None else found is not None and found.endswith(fault)
    # What the dialect says of its reasons comes first.
    declared = trace_fault(trace, Mode.HYBRID_RERANK, ["quota exceeded"])
    assert (declared is None) == (reason == "quota exceeded")


@pytest.mark.parametrize("reason", [None, "no_vector_hits", "http 503"])
@pytest.mark.parametrize("mode", [Mode.SEMANTIC, Mode.HYBRID])
def test_a_mode_with_vectors_that_used_none_is_another_mode_whatever_the_reason(
    mode: Mode, reason: str | None
) -> None:
    modes = {"requestedMode": mode.value, "effectiveMode": mode.value}
    body = _TRACE | modes | {"embedderUsed": False, "vectorSkipReason": reason}
    fault = trace_fault(Trace.model_validate_json(json.dumps(body)), mode)
    assert fault == f"effectiveMode {mode.value} without an embedder" + (
        f": {reason}" if reason else ""
    )
