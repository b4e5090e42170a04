"""`chunks: null` where nothing is found is one finding; the ranking is measured as empty."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from memconform.bench.raw_http import RawExchange, RawRequest, serving
from memconform.bench.records import QueryRecord
from memconform.bench.rows import row
from memconform.client.ask_stream import AskStream
from memconform.client.client import ContractClient
from memconform.client.failures import CallError
from memconform.client.messages import read_message
from memconform.contract.ask import AskRequest, Retrieve
from memconform.contract.core import SearchRequest, SearchResponse
from memconform.contract.dialect import Dialect
from memconform.contract.dialect_keys import DialectError
from memconform.contract.documents import Listing
from memconform.contract.strict_json import RepeatedKeyError
from memconform.contract.wire import Mode
from memconform.reports.console import null_lists
from memconform.runs.events import RunFinished
from memconform.runs.results import RunResult
from memconform.runs.schedule import execute
from tests.adversarial.inprocess import FaultyRun, InProcessRunner, plan_of
from tests.fakes.hostile import HostileDaemon
from tests.fakes.scripted import ScriptedBrain

_TRACE = {
    "requestedMode": "bm25", "effectiveMode": "bm25", "embedderUsed": False, "reranked": False,
    "fellBackToBm25": False, "candidateK": 50, "searchMs": 1.0,
}  # fmt: skip
_CHUNK = {"chunkId": "a#0", "documentId": "a", "path": "a.md", "score": 1.0, "text": "x"}
_NOTHING = {"chunks": None, "tookMs": 1.0, "trace": _TRACE}
_NESTED = Dialect.model_validate({"objects": {"search_response": {"chunks": "result.hits"}}})


def _read(value: Any, model: type[BaseModel] = SearchResponse, dialect: Any = None) -> Any:
    return read_message(json.dumps(value).encode(), model, dialect)


def test_null_for_an_empty_ranking_is_read_and_marked() -> None:
    answer = _read(_NOTHING)
    assert (answer.chunks, answer.was_null) == ([], True)
    assert not _read(_NOTHING | {"chunks": []}).was_null
    assert not _read(_NOTHING | {"chunks": [_CHUNK]}).was_null


def test_null_is_read_where_a_dialect_has_the_list() -> None:
    value = {"result": {"hits": None}, "tookMs": 1.0, "trace": _TRACE}
    assert _read(value, dialect=_NESTED).was_null
    with pytest.raises((ValidationError, DialectError)):
        _read(value | {"result": {}}, dialect=_NESTED)
    with pytest.raises((ValidationError, DialectError)):
        _read(value | {"result": None}, dialect=_NESTED)


@pytest.mark.parametrize("dialect", [None, Dialect()])
@pytest.mark.parametrize(
    ("value", "model"),
    [
        ({"tookMs": 1.0, "trace": _TRACE}, SearchResponse),
        (_NOTHING | {"trace": None}, SearchResponse),
        (_NOTHING | {"tookMs": None}, SearchResponse),
        (_NOTHING | {"chunks": {}}, SearchResponse),
        (_NOTHING | {"chunks": ""}, SearchResponse),
        (_NOTHING | {"chunks": [None]}, SearchResponse),
        ({"chunks": None}, SearchResponse),
        (None, SearchResponse),
        ({"items": None}, Listing),
        ({"chunks": None, "topK": 5, "mode": "bm25"}, Retrieve),
    ],
)
def test_no_other_null_and_no_missing_key_is_excused(
    value: Any, model: type[BaseModel], dialect: Dialect | None
) -> None:
    with pytest.raises((ValidationError, DialectError)):
        _read(value, model, dialect)


@pytest.mark.parametrize("dialect", [None, Dialect()])
@pytest.mark.parametrize(
    "failure",
    [{"error": "the index is gone"}, {"ok": False}, {"status": 503}, {"trace": {"error": "lost"}}],
)
def test_an_error_beside_null_wins(failure: dict[str, Any], dialect: Dialect | None) -> None:
    with pytest.raises(DialectError, match="reports a failure") as caught:
        _read(_NOTHING | failure, dialect=dialect)
    assert caught.value.code == "reported_error"


def test_a_repeated_key_beside_null_wins() -> None:
    with pytest.raises(RepeatedKeyError):
        read_message(b'{"chunks": [], "chunks": null}', SearchResponse)


def test_null_is_no_excuse_where_the_mode_ranks_all() -> None:
    stream = AskStream(AskRequest(question="red kite"))
    trace = _TRACE | {"requestedMode": "auto", "effectiveMode": "semantic", "embedderUsed": True}
    data = {"chunks": None, "topK": 5, "mode": "semantic", "trace": trace}
    with pytest.raises(CallError, match="ranks all") as caught:
        stream.feed("retrieve", json.dumps(data))
    assert caught.value.code == "bad_ranking"


def test_a_bench_row_counts_null_lists() -> None:
    record = QueryRecord(
        system="go", strategy="bm25", haystack="h", query="q", category="", views={}, ranking=[],
        latency_ms=1, search_ms=None,
    )  # fmt: skip
    records = [record, record.model_copy(update={"null_chunks": True})]
    assert row("go", "bm25", 2, records, None, ks=(5,)).null_lists == 1
    assert null_lists(1) == "chunks is null, not [], in 1 empty ranking (core.search.shape)"


async def test_the_client_counts_null_lists() -> None:
    async def answer(_: RawRequest, exchange: RawExchange) -> None:
        await exchange.json(_NOTHING)

    async with (
        serving(answer, "127.0.0.1", 0) as port,
        ContractClient(f"http://127.0.0.1:{port}") as client,
    ):
        found, _ = await client.search("b", SearchRequest(query="kite", mode=Mode.BM25))
        assert (found.chunks, client.null_lists) == ([], 1)


async def test_an_error_inside_a_success_is_not_counted_as_finding_nothing() -> None:
    async def answer(_: RawRequest, exchange: RawExchange) -> None:
        await exchange.json(_NOTHING | {"errors": ["the index is gone"]})

    async with (
        serving(answer, "127.0.0.1", 0) as port,
        ContractClient(f"http://127.0.0.1:{port}") as client,
    ):
        with pytest.raises(CallError) as caught:
            await client.search("b", SearchRequest(query="kite", mode=Mode.BM25))
        assert (caught.value.code, client.null_lists) == ("reported_error", 0)


class _NullDaemon(HostileDaemon):
    """Sends null for an empty list, and on request a failure beside it."""

    def __init__(self, failure: dict[str, Any]) -> None:
        super().__init__([])
        self._failure = failure

    def _retrieve(self, brain: ScriptedBrain, query: str, body: dict[str, Any]) -> dict[str, Any]:
        found = super()._retrieve(brain, query, body)
        if found["chunks"]:
            return found
        return found | {"chunks": None} | (self._failure if "unheard" in query else {})


class _NullRunner(InProcessRunner):
    def __init__(self, failure: dict[str, Any]) -> None:
        super().__init__([])
        self._daemon = _NullDaemon(failure)


async def _run(folder: Path, failure: dict[str, Any]) -> RunResult:
    rows = [
        {
            "id": word,
            "question": f"What of {word}?",
            "expected_substrings": ["kestrel"],
            "reference_answer": "The kestrel is at the quarry",
        }
        for word in ("quarry", "unheard")
    ]
    dataset = folder / "rows.jsonl"
    dataset.write_text("".join(json.dumps(row) + "\n" for row in rows))
    plan = plan_of(FaultyRun((), "search-retrieve-only", 1), dataset, folder / "out")
    async for event in execute(plan, _NullRunner(failure)):
        if isinstance(event, RunFinished):
            return RunResult.model_validate_json(event.result.read_bytes())
    raise AssertionError("no result")


async def test_a_question_that_finds_null_is_measured_and_counted(tmp_path: Path) -> None:
    """Seeding failed, or the questions were lost that find nothing (issue 35)."""
    result = await _run(tmp_path, {})
    assert {q.id: q.verdict.value for q in result.questions} == {
        "quarry": "correct",
        "unheard": "incorrect",
    }
    assert result.null_lists == 1


async def test_a_failure_that_comes_with_null_is_not_measured(tmp_path: Path) -> None:
    result = await _run(tmp_path, {"error": "the index is gone"})
    assert [q.verdict.value for q in result.questions] == ["correct", "daemon_error"]
    assert (result.null_lists, result.questions[1].error.code) == (0, "reported_error")  # type: ignore[union-attr]
