"""Parts of a bench: strategies, the document map, views, rows and the resume state."""

import asyncio
import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np
import pytest
import scipy.stats
from rank_bm25 import BM25Okapi

from memconform.bench.baselines import baseline_system
from memconform.bench.daemon_system import DaemonSystem
from memconform.bench.document_map import DocumentMap
from memconform.bench.journal import ResumeState, load_resume_state
from memconform.bench.plan import ContentDigest, scan
from memconform.bench.records import (
    BenchJournalHeader,
    BenchSettings,
    IndexRecord,
    JournalRecord,
    OfficialScoring,
    QueryRecord,
    Relevance,
)
from memconform.bench.rows import ranking_agreement, row, with_added_latency
from memconform.bench.strategy import Strategy, strategies
from memconform.bench.system import SearchResult
from memconform.bench.tasks import OFFICIAL, OFFICIAL_SESSIONS, QueryPlanner, Task
from memconform.client.failures import CallError, ContractViolatedError
from memconform.contract.core import Chunk, Ingested, SearchResponse, Tuning
from memconform.contract.wire import Mode
from memconform.datasets.benchmarks import open_benchmark
from memconform.datasets.haystacks import Haystack, Item
from memconform.datasets.question import Question
from memconform.errors import DaemonError, UsageError
from memconform.ingest.documents import Document
from memconform.ingest.ingested import IngestedDocuments
from memconform.ingest.records import IndexInvalidated, IndexVerified
from memconform.measuring.requirements import require_complete
from memconform.records import Failure
from memconform.scoring.accuracy import Estimate
from memconform.upstream.embedders import get_embedder

_ITEMS = tuple(Item(f"s{n // 2}_{n}", f"text {n}", f"s{n // 2}") for n in range(6))
_QUERY = Question("q", "What?", "c", gold=("s1_3",))
_HAYSTACK = Haystack("h", _ITEMS, (_QUERY,))


def _task(**more: Any) -> Task:
    defaults: dict[str, Any] = {
        "haystack": "h",
        "query": _QUERY,
        "relevant_by_view": {},
        "sessions": {},
    }
    return Task(**(defaults | {"depth": 3} | more))


def _chunk(path: str, text: str, **more: object) -> Chunk:
    defaults = {"chunk_id": f"{path}#{text}", "document_id": "d", "path": path, "score": 1.0}
    return Chunk.model_validate(defaults | {"text": text} | more)


def _record(query: str, **more: object) -> QueryRecord:
    defaults = {
        "system": "go",
        "strategy": "bm25",
        "haystack": "h",
        "query": query,
        "category": "c",
        "views": {"all": Relevance(gold=["a"])},
        "ranking": ["a", "b"],
        "latency_ms": 2.0,
        "search_ms": 1.0,
    }
    return QueryRecord.model_validate(defaults | more)


def test_strategies_combine_modes_with_the_tuning_that_affects_them() -> None:
    sweeps: dict[str, list[Any]] = {
        "fusion": ["minmax", "rrf"],
        "alpha": [0.3],
        "rrfK": [5, 60],
        "recency": [None, 0.05],
        "temporal": [0.4],
    }
    labels = [
        strategy.label for strategy in strategies([Mode.BM25, Mode.HYBRID, Mode.BM25], sweeps)
    ]
    assert labels == [
        "bm25",
        "hybrid fusion=minmax alpha=0.3 temporal=0.4",
        "hybrid fusion=minmax alpha=0.3 recency=0.05 temporal=0.4",
        "hybrid fusion=rrf rrfK=5 temporal=0.4",
        "hybrid fusion=rrf rrfK=5 recency=0.05 temporal=0.4",
        "hybrid fusion=rrf rrfK=60 temporal=0.4",
        "hybrid fusion=rrf rrfK=60 recency=0.05 temporal=0.4",
    ]


def _asked(text: str, date: str | None = "2023/05/30 (Tue) 23:40") -> Question:
    return Question(id="q", question=text, question_date=date)


def test_dates_are_sent_with_the_date_of_the_question() -> None:
    strategy = Strategy(Mode.HYBRID, {"fusion": "rrf", "recency": 0.25, "temporal": 0.4})
    tuning = strategy.requested_tuning(_asked("What did I plant two weeks ago?"))
    assert tuning is not None
    assert tuning.model_dump(by_alias=True, exclude_none=True) == {
        "fusion": "rrf",
        "recency": {
            "now": "2023-05-30T23:40:00Z",
            "relevance": 0.6,
            "weight": 0.25,
            "decayDays": 7.0,
        },
        "temporal": {"at": "2023-05-16T23:40:00Z", "toleranceDays": 5.0, "boost": 0.4},
    }
    assert strategy.needs_dates
    without = strategy.requested_tuning(_asked("What did I plant?"))
    assert without is not None
    assert (without.recency, without.temporal) == (tuning.recency, None)
    alone = Strategy(Mode.HYBRID, {"temporal": 0.4})
    assert alone.requested_tuning(_asked("What did I plant?")) is None
    plain = Strategy(Mode.HYBRID, {"fusion": "rrf"})
    assert (plain.needs_dates, plain.requested_tuning(_asked("x", None))) == (
        *(False, Tuning(fusion="rrf")),
    )
    assert Strategy(Mode.HYBRID).requested_tuning(_asked("x", None)) is None


@pytest.mark.parametrize("date", [None, "", "May", "2023/02/30 (Tue) 23:40"])
def test_a_question_without_a_date_is_not_measured_by_dates(date: str | None) -> None:
    for tuning in ({"recency": 0.05}, {"temporal": 0.4}):
        with pytest.raises(CallError) as caught:
            Strategy(Mode.HYBRID, tuning).requested_tuning(_asked("a week ago", date))
        assert caught.value.code == "no_question_date"


def test_only_questions_that_are_asked_need_a_date(tmp_path: Path) -> None:
    path = tmp_path / "lme.json"
    row = {
        "question_type": "knowledge-update",
        "question": "Where?",
        "answer": "x",
        "haystack_dates": ["2023/05/15 (Mon) 10:00"],
        "haystack_session_ids": ["s"],
        "haystack_sessions": [[{"role": "user", "content": "x", "has_answer": True}]],
        "answer_session_ids": ["s"],
    }
    dates = {"a": "2023/05/29 (Mon) 10:00", "b": "2023/02/30 (Tue) 10:00", "c": "May"}
    rows = [{**row, "question_id": name, "question_date": date} for name, date in dates.items()]
    path.write_text(json.dumps(rows))
    survey = scan(open_benchmark(path, "longmemeval", {"level": None, "session_doc": None}))
    assert survey.undated == {"b": "2023/02/30 (Tue) 10:00", "c": "May"}
    survey.require_question_dates({"a"})
    with pytest.raises(UsageError, match=r"2 questions without a valid date.*b: '2023/02/30"):
        survey.require_question_dates(survey.queries)


def test_the_kernel_is_swept_where_vectors_are_compared() -> None:
    modes = [Mode.BM25, Mode.SEMANTIC, Mode.HYBRID, Mode.AUTO]
    swept = strategies(modes, {"alpha": [0.3], "kernel": ["cosine", "inverse-l2"]})
    assert [(strategy.label, strategy.kernel) for strategy in swept] == [
        ("bm25", None),
        ("semantic kernel=cosine", "cosine"),
        ("semantic kernel=inverse-l2", "inverse-l2"),
        ("hybrid alpha=0.3 kernel=cosine", "cosine"),
        ("hybrid alpha=0.3 kernel=inverse-l2", "inverse-l2"),
        ("auto", None),
    ]
    assert Strategy(Mode.HYBRID_RERANK).kernel == "cosine"


def _daemon_system(dialect: object = None, rank_by: Any = "score") -> DaemonSystem:
    runner: Any = SimpleNamespace(dialect=dialect)
    return DaemonSystem(runner, (), Path(), "r", "own", shared=False, rank_by=rank_by)


def test_ties_and_kernels_are_named_only_of_systems_that_say_them() -> None:
    hybrid, swept = Strategy(Mode.HYBRID), Strategy(Mode.HYBRID, {"kernel": "inverse-l2"})
    own, foreign = _daemon_system(), _daemon_system(dialect=object())
    assert (own.ties, own.kernel(hybrid), own.kernel(swept)) == (
        *("by the order of the items", "cosine"),
        "inverse-l2",
    )
    # Nobody knows the arithmetic of a daemon that does not claim the contract's.
    assert (foreign.ties, foreign.kernel(hybrid), foreign.kernel(swept)) == (
        *(None, None),
        "inverse-l2",
    )
    assert _daemon_system(rank_by="position").ties is None
    flat = baseline_system("flat-bm25", 0, _nothing_embeds)
    assert (flat.ties, flat.kernel(Strategy(None))) == ("by the reversed argsort", None)
    dense = baseline_system("flat-dense", 0, lambda: get_embedder("fh256-1"))
    assert (dense.ties, dense.kernel(Strategy(None))) == ("by the order of the items", "cosine")


_OPEN = ExitStack()


@pytest.fixture(autouse=True)
def _closing() -> Iterator[None]:
    yield
    _OPEN.close()


def _ingested(documents: Iterable[Document], counts: dict[str, int]) -> IngestedDocuments:
    ingested = _OPEN.enter_context(IngestedDocuments())
    for document in documents:
        acknowledged = Ingested(
            document_id="d",
            path=document.path,
            chunk_count=counts.get(document.path, 1),
            bytes=len(document.content),
            took_ms=0.0,
        )
        ingested.add(document, acknowledged)
    return ingested


class TestDocumentMap:
    def _document_map(self, counts: dict[str, int] | None = None) -> DocumentMap:
        document_map = DocumentMap([_HAYSTACK, Haystack("other", _ITEMS[:1], ())])
        documents = list(document_map.documents())
        assert [document.path for document in documents[:2]] == [
            "000000/000000.md",
            "000000/000001.md",
        ]
        document_map.record_ingested(_ingested(documents, counts or {}))
        return document_map

    def test_chunks_of_a_document_count_once_at_the_rank_of_the_first(self) -> None:
        document_map = self._document_map({"000000/000002.md": 3})
        chunks = [
            _chunk(f"000000/00000{n}.md", part) for n, part in ((2, "t"), (0, "text 0"), (2, "2"))
        ]
        assert document_map.to_item_ranking(_task(), chunks) == ("s1_2", "s0_0")
        # Two chunks more than items: so many more are asked for.
        assert (
            document_map.searchable_counts("h", None),
            document_map.searchable_counts("other", None),
        ) == (
            (8, 6),
            (1, 1),
        )
        assert document_map.searchable_counts("h", {"s1_2", "s0_0"}) == (4, 2)

    def test_documents_have_dates_only_if_they_are_needed(self) -> None:
        item = Item("a", "text", date="2023/05/30 (Tue) 23:40")
        for dated, more in ((False, {}), (True, {"date": "2023-05-30T23:40:00Z"})):
            [document] = DocumentMap(
                [Haystack("h", (item,), ())], dates="needed" if dated else "none"
            ).documents()
            assert document.metadata == {"item_id": "a", **more}

    def test_another_key_of_a_turn_is_no_turn(self) -> None:
        items = (Item("a", "text", "D1"), Item("a#1", "key", "D1", source="a"))
        documents = DocumentMap([Haystack("h", items, ())], turns=True).documents()
        assert [d.metadata for d in documents] == [
            {"item_id": "a", "session_id": "h/D1", "index": 0},
            {"item_id": "a#1"},
        ]

    def test_turns_have_a_session_of_their_haystack_if_conversations_are_ranked(self) -> None:
        """The sessions of two haystacks have the same names, and one brain may hold both."""
        items = (Item("a", "text", "D1", speaker="Ana"), Item("b", "text", "D1"), Item("c", "text"))
        haystacks = [Haystack("h", items, ()), Haystack("i", items[:1], ())]
        documents = list(DocumentMap(haystacks, turns=True).documents())
        assert [document.metadata for document in documents] == [
            {"item_id": "a", "session_id": "h/D1", "index": 0, "speaker": "Ana"},
            {"item_id": "b", "session_id": "h/D1", "index": 1},
            {"item_id": "c"},
            {"item_id": "a", "session_id": "i/D1", "index": 0, "speaker": "Ana"},
        ]
        for document in DocumentMap(haystacks).documents():
            assert document.metadata is not None
            assert document.metadata.keys() == {"item_id"}

    @pytest.mark.parametrize("date", [None, "spring"])
    def test_an_item_without_a_date_is_refused_where_dates_are_needed(
        self, date: str | None
    ) -> None:
        haystack = Haystack("h", (Item("a", "text", date=date),), ())
        assert len(list(DocumentMap([haystack]).documents())) == 1
        with pytest.raises(UsageError) as caught:
            list(DocumentMap([haystack], dates="needed").documents())
        assert (caught.value.code, "item a has no date" in str(caught.value)) == (
            *("no_item_date", True),
        )

    def test_another_key_of_an_item_counts_as_the_item(self) -> None:
        items = (_ITEMS[0], Item("s0_0#1", "a summary", "s0", source="s0_0"), _ITEMS[1])
        document_map = DocumentMap([Haystack("h", items, ())])
        documents = list(document_map.documents())
        document_map.record_ingested(_ingested(documents, {}))
        paths = [document.path for document in documents]
        assert document_map.to_item_ranking(
            _task(), [_chunk(paths[1], "a summary"), _chunk(paths[0], "text 0")]
        ) == ("s0_0",)
        assert document_map.searchable_counts("h", None) == (3, 2)

    @pytest.mark.parametrize(
        ("chunk", "code"),
        [
            (_chunk("raw/x.md", "text"), "foreign_chunk"),
            (_chunk("000001/000000.md", "text 0"), "filter_ignored"),
            (_chunk("000000/000000.md", "text 1"), "foreign_text"),
            (_chunk("000000/000000.md", "text 0", metadata={"item_id": "s0_1"}), "other_item"),
        ],
    )
    def test_rejects_chunks_that_are_not_of_the_haystack(self, chunk: Chunk, code: str) -> None:
        with pytest.raises(ContractViolatedError) as caught:
            self._document_map().to_item_ranking(_task(), [chunk])
        assert caught.value.code == code

    def test_rejects_chunks_of_pruned_items(self) -> None:
        document_map, task = self._document_map(), _task(candidates=frozenset({"s0_0"}))
        assert document_map.paths("h", {"s0_0"}) == ["000000/000000.md"]
        assert document_map.to_item_ranking(task, [_chunk("000000/000000.md", "text 0")]) == (
            "s0_0",
        )
        with pytest.raises(ContractViolatedError):
            document_map.to_item_ranking(task, [_chunk("000000/000001.md", "text 1")])

    def test_an_item_without_a_chunk_makes_the_index_incomplete(self) -> None:
        with pytest.raises(DaemonError, match="no chunk"):
            self._document_map({"000000/000003.md": 0})

    def test_names_an_item_that_is_too_large(self) -> None:
        large = Haystack("h", (Item("big", "x" * (8 * 2**20 + 1)),), ())
        with pytest.raises(UsageError, match="item big has 8388609 bytes"):
            list(DocumentMap([large]).documents())


def _answer(chunks: int, mode: str) -> SearchResponse:
    trace = {
        "requestedMode": mode,
        "effectiveMode": mode,
        "embedderUsed": mode != "bm25",
        "reranked": False,
        "fellBackToBm25": False,
        "candidateK": 50,
        "searchMs": 0.1,
    }
    results = [_chunk(f"{n}.md", "t").model_dump(by_alias=True) for n in range(chunks)]
    body = {"chunks": results, "tookMs": 0.1, "trace": trace}
    return SearchResponse.model_validate_json(json.dumps(body))


@pytest.mark.parametrize(
    ("searchable_counts", "chunks", "mode", "ranked", "short"),
    [
        # Vectors rank every chunk: eleven of twelve items are missing.
        ((12, 12), 1, "semantic", 1, True),
        # Keywords find what has them.
        ((12, 12), 1, "bm25", 1, False),
        # Fifty chunks of five items, of ten that there are.
        ((300, 10), 50, "hybrid", 5, True),
        ((300, 10), 50, "hybrid", 10, False),
        # All that there is.
        ((3, 3), 3, "semantic", 3, False),
        # The largest topK is full of chunks of two items.
        ((2_000, 10), 100, "bm25", 2, True),
    ],
)
def test_missing_items_that_the_mode_ranks_are_a_violation(
    searchable_counts: tuple[int, int], chunks: int, mode: str, ranked: int, *, short: bool
) -> None:
    with pytest.raises(ContractViolatedError, match="are needed") if short else nullcontext():
        require_complete(searchable_counts, 10, 100, _answer(chunks, mode), ranked=ranked)


def test_turns_are_also_scored_by_session() -> None:
    sessions = {f"s{n // 2}_{n}": f"s{n // 2}" for n in range(6)} | {"s1_2": "noans_s1"}
    planner = QueryPlanner(
        query_ids=frozenset({"q"}),
        depth=2,
        official_gold=lambda _: ("s1_3", "s2_4", "s2_5"),
        official_sessions=lambda _: sessions,
    )
    [task] = planner.tasks(_HAYSTACK)
    # All turns are ranked: two sessions may take more than two of them.
    assert task.depth == 6
    views = task.views(("s0_0", "s0_1", "s1_2", "s2_4"))
    assert (views[OFFICIAL].gold, views[OFFICIAL].ranking) == (["s1_3", "s2_4", "s2_5"], None)
    by_session = views[OFFICIAL_SESSIONS]
    assert by_session.gold == ["s1", "s2"]
    assert by_session.ranking == ["s0", "s0", "noans_s1", "s2"]
    assert by_session.official == OfficialScoring(relevant=3, by_session=True)
    # A question that the official metrics skip is in none of their views.
    [skipped] = QueryPlanner(
        query_ids=frozenset({"q"}),
        depth=2,
        official_gold=lambda _: (),
        official_sessions=lambda _: sessions,
    ).tasks(_HAYSTACK)
    assert set(skipped.views(())) == {"all"}


def test_a_row_has_numbers_only_if_nothing_is_missing() -> None:
    failure = Failure(code="timeout", message="nothing more came")
    records = [_record("q1"), _record("q2"), _record("q3", error=failure, views={})]
    summary = row("go", "bm25", 4, records, None, ks=[1])
    assert (summary.measured, summary.not_measured, summary.views) == (False, 2, {})
    assert summary.why == ["1 of timeout, the first q3: nothing more came"]
    whole = row("go", "bm25", 2, records[:2], None, ks=[1])
    assert whole.views["all"].metrics["recall_any@1"].value == 100


def test_a_query_without_gold_counts_only_for_latency() -> None:
    records = [_record("q1"), _record("q2", views={}, latency_ms=700.0)]
    summary = row("go", "bm25", 2, records, None, ks=[1])
    assert summary.views["all"].queries == 1
    assert summary.latency is not None
    assert list(summary.latency.tiers.values()) == [0.5, 0.0, 0.5, 0.0]


@pytest.mark.parametrize(("latency", "tier"), [(299.9, 0), (300, 1), (500, 2), (999, 2), (1000, 3)])
def test_each_tier_begins_where_the_one_before_ends(latency: float, tier: int) -> None:
    summary = row("go", "bm25", 1, [_record("q", latency_ms=latency)], None, ks=[1])
    assert summary.latency is not None
    assert list(summary.latency.tiers.values()).index(1.0) == tier


def test_reranker_latency_is_measured_query_by_query() -> None:
    records = [
        _record(f"q{n}", strategy=strategy, latency_ms=latency)
        for strategy, latencies in (
            ("hybrid", (1.0, 9.0, 2.0)),
            ("hybrid-rerank", (11.0, 12.0, 22.0)),
        )
        for n, latency in enumerate(latencies)
    ]
    rows = [
        row("go", name, 3, [r for r in records if r.strategy == name], None, ks=[1])
        for name in ("hybrid", "hybrid-rerank")
    ]
    plain, reranked = with_added_latency(rows, records)
    assert plain.rerank_adds_ms is None
    assert reranked.rerank_adds_ms is not None
    assert reranked.rerank_adds_ms.p50 == 10


def _judged(hits: Iterable[tuple[int, bool]]) -> dict[str, Estimate]:
    """Metrics at 1 and 5 of queries in haystacks, whose first item is gold or whose third is."""
    records = [
        _record(
            f"q{number}",
            haystack=f"h{haystack}",
            ranking=["a", "b", "c"] if is_hit else ["b", "c", "a"],
        )
        for number, (haystack, is_hit) in enumerate(hits)
    ]
    return row("go", "bm25", len(records), records, None, ks=[1, 5]).views["all"].metrics


_ONE_NUMBER = ("recall_any@1", "recall_all@1", "precision@1", "ndcg@1", "ndcg_any@1")


@pytest.mark.parametrize("haystacks", [4, 12, 120])
def test_one_number_has_one_interval(haystacks: int) -> None:
    metrics = _judged((n % haystacks, n % haystacks % 3 > 0) for n in range(120))
    assert len({metrics[name] for name in _ONE_NUMBER}) == 1
    # All queries find it among five: that too is a rate, and not certain.
    assert (metrics["recall_any@5"].high, metrics["recall_any@5"].low < 98) == (100, True)
    assert metrics["mrr@5"].low < metrics["mrr@5"].value < metrics["mrr@5"].high


def test_means_that_are_rates_have_the_interval_of_a_rate() -> None:
    metrics = _judged((n, True) for n in range(20))
    assert metrics["mrr@5"] == metrics["ndcg@5"] == metrics["recall_any@1"]
    assert metrics["mrr@5"].low == pytest.approx(83.9, abs=0.05)


def test_the_mean_of_haystacks_has_the_error_of_haystacks() -> None:
    """Queries of a haystack find alike: twelve things are known, not 240."""
    alike = _judged((n % 12, n % 12 < 6) for n in range(240))["mrr@5"]
    single = _judged((n, n % 12 < 6) for n in range(240))["mrr@5"]
    assert alike.value == single.value == pytest.approx(100 * (1 + 1 / 3) / 2)
    means = [1.0] * 6 + [1 / 3] * 6
    theirs = scipy.stats.ttest_1samp(means, 0).confidence_interval()
    assert (alike.low, alike.high) == pytest.approx((100 * theirs.low, 100 * theirs.high))
    assert alike.high - alike.low > 4 * (single.high - single.low)
    # Nine haystacks are too few to see how haystacks vary: the interval is about these alone.
    few = _judged((n % 9, n % 9 < 4) for n in range(240))["mrr@5"]
    assert few.high - few.low < 2 * (single.high - single.low)


def test_a_single_query_has_no_narrow_interval() -> None:
    metrics = _judged([(0, False)])
    assert (metrics["mrr@5"].low, metrics["mrr@5"].high) == (0, 100)


def test_reports_the_rank_at_which_systems_differ() -> None:
    records = [_record("q1"), _record("q1", system="py"), _record("q2")]
    records += [_record("q2", system="py", ranking=["a", "c"]), _record("q3")]
    agreement = ranking_agreement("bm25", ["go", "py"], records)
    assert agreement is not None
    # Of q3 the second has no ranking: it is not compared.
    assert (agreement.compared, agreement.equal) == (2, 1)
    assert agreement.differs == ["q2: py differs from go at rank 2"]
    assert ranking_agreement("bm25", ["go"], records) is None


_SETTINGS = BenchSettings(
    format="memini",
    options={},
    content_sha256="0",
    chosen_sha256="1",
    disputed_sha256=None,
    pruned_sha256=None,
    index="isolated",
    ks=[5],
)
_INDEX = IndexRecord(system="go", haystack="h", documents=1, chunks=1, vectors=0, ingest_ms=1)

_VERIFIED = IndexVerified(system="go", haystack="h")


def _journal(path: Path, *records: JournalRecord) -> Path:
    header = BenchJournalHeader(run_id="r", settings=_SETTINGS, systems={"go": "built"})
    lines = [record.model_dump_json() for record in (header, *records)]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_resume_takes_measured_queries_and_repeats_the_others(tmp_path: Path) -> None:
    failed = _record("q2", error=Failure(code="timeout", message="t"))
    journal = _journal(tmp_path / "j", _INDEX, _record("q1"), failed, _VERIFIED, _record("q3"))
    with journal.open("a") as file:
        file.write('{"stage": "query", "system')
    state = load_resume_state(journal, _SETTINGS, {"go": "built"})
    assert state.indexes == {("go", "h"): _INDEX}
    assert list(state.queries) == [("go", "bm25", "q1")]


def test_resume_drops_measurements_in_an_invalidated_index(tmp_path: Path) -> None:
    invalidated = IndexInvalidated(
        system="go", haystack="h", error=Failure(code="brain_changed", message="m")
    )
    other = _record("q2", haystack="other")
    index = _INDEX.model_copy(update={"haystack": "other"})
    whole = _VERIFIED.model_copy(update={"haystack": "other"})
    first = (index, other, whole)
    journal = _journal(tmp_path / "j", *first, _INDEX, _record("q1"), _VERIFIED, invalidated)
    state = load_resume_state(journal, _SETTINGS, {"go": "built"})
    assert state.indexes == {("go", "other"): index}
    assert list(state.queries) == [("go", "bm25", "q2")]
    # Invalidating an index of all haystacks drops them all.
    everything = invalidated.model_copy(update={"haystack": ""})
    journal = _journal(tmp_path / "k", *first, _INDEX, _record("q1"), _VERIFIED, everything)
    assert load_resume_state(journal, _SETTINGS, {"go": "built"}) == ResumeState()


def test_an_index_that_changes_after_a_resume_takes_nothing_of_the_one_before(
    tmp_path: Path,
) -> None:
    """Queries that were adopted, and whose index was verified, had been asked of another index."""
    lost = IndexInvalidated(
        system="go",
        haystack="h",
        strategies=["bm25"],
        error=Failure(code="brain_changed", message="m"),
    )
    adopted = (_INDEX, _record("q1"), _VERIFIED)
    journal = _journal(tmp_path / "j", *adopted, _INDEX, _record("q2"), _VERIFIED, lost)
    state = load_resume_state(journal, _SETTINGS, {"go": "built"})
    assert list(state.queries) == [("go", "bm25", "q1")]
    assert state.indexes == {("go", "h"): _INDEX}


def test_a_bench_is_not_resumed_by_other_systems_alone(tmp_path: Path) -> None:
    journal = _journal(tmp_path / "j", _INDEX, _record("q1"), _VERIFIED)
    # It was measured from scratch under the other's name, and overwrote the other's answers.
    with pytest.raises(UsageError, match="other settings: systems was go, is py"):
        load_resume_state(journal, _SETTINGS, {"py": "built"})
    joined = load_resume_state(journal, _SETTINGS, {"go": "built", "py": "built"})
    assert joined == load_resume_state(journal, _SETTINGS, {"go": "built"})
    state = load_resume_state(journal, _SETTINGS, {"go": "built"})
    again = _journal(tmp_path / "again", *state.records())
    assert load_resume_state(again, _SETTINGS, {"go": "built"}) == state


@pytest.mark.parametrize(
    ("settings", "systems", "named"),
    [
        ({"ks": [5, 10]}, {"go": "built"}, "was made with other settings: ks"),
        ({"content_sha256": "other"}, {"go": "built"}, "other settings: content was 0, is other"),
        # The message named `systems.go` alone.
        ({}, {"go": "built anew"}, "go: not the same as in .*"),
        # A system of that name hid the setting.
        ({"ks": [5, 10]}, {"ks": "built"}, "was made with other settings: ks"),
    ],
)
def test_refuses_to_resume_a_bench_with_other_settings(
    tmp_path: Path, settings: dict[str, object], systems: dict[str, str], named: str
) -> None:
    journal = _journal(tmp_path / "j", _INDEX, _record("q1"), _VERIFIED)
    with pytest.raises(UsageError, match=named):
        load_resume_state(journal, _SETTINGS.model_copy(update=settings), systems)


def test_a_system_that_could_not_be_built_is_mended_and_joins_the_measured_ones(
    tmp_path: Path,
) -> None:
    """Its build had another digest without the tool that it lacked: no resume took place."""
    header = BenchJournalHeader(run_id="r", settings=_SETTINGS, systems={"go": "1", "py": "none"})
    # A search whose index was never verified is asked again, whatever the build.
    unproven = _record("q1").model_copy(update={"system": "py"})
    lines = [
        each.model_dump_json() for each in (header, _INDEX, _record("q1"), _VERIFIED, unproven)
    ]
    (tmp_path / "j").write_text("\n".join(lines) + "\n")
    state = load_resume_state(tmp_path / "j", _SETTINGS, {"go": "1", "py": "mended"})
    assert list(state.queries) == [("go", "bm25", "q1")]


@pytest.mark.parametrize("content", ["", "{}\n", "[]\n", '{"stage": "query"}\n'])
def test_reports_a_file_that_is_not_a_journal(tmp_path: Path, content: str) -> None:
    (tmp_path / "j").write_text(content)
    with pytest.raises(UsageError, match="is not a journal of `memconform bench`"):
        load_resume_state(tmp_path / "j", _SETTINGS, {})


def test_flat_bm25_is_rank_bm25_with_ties_by_the_reversed_argsort() -> None:
    texts = ["the kiln is hot", "A b", "the kiln is hot", "kiln kiln", "nothing here", "A b"]
    items = tuple(Item(f"i{n}", text) for n, text in enumerate(texts))
    scores = BM25Okapi([text.split(" ") for text in texts]).get_scores(["kiln", "is", "", "A"])
    expected = [f"i{n}" for n in np.argsort(scores)[::-1]]
    query = Question("q", "kiln is  A", "c", gold=("i0",))

    async def ranking() -> tuple[str, ...]:
        system = baseline_system("flat-bm25", 0, _nothing_embeds)
        async with (
            system.open() as session,
            session.build_index([Haystack("h", items, (query,))]) as index,
        ):
            return (await index.search(_task(query=query, depth=6), Strategy(None))).ranking

    assert list(asyncio.run(ranking())) == expected


def test_flat_bm25_ranks_an_item_twice_that_the_released_code_indexes_twice() -> None:
    kiln, shed = Item("kiln", "a kiln"), Item("shed", "a shed")
    query = Question("q", "kiln", "c", gold=("kiln",))
    haystack = Haystack("h", (kiln, shed), (query,), official_items=(kiln, shed, kiln))

    async def search(*, official_items: bool) -> SearchResult:
        system = baseline_system("flat-bm25", 0, _nothing_embeds, official_items=official_items)
        async with system.open() as session, session.build_index([haystack]) as index:
            return await index.search(_task(query=query, depth=6), Strategy(None))

    official = asyncio.run(search(official_items=True))
    assert sorted(official.entries) == ["kiln", "kiln", "shed"]
    assert sorted(official.ranking) == ["kiln", "shed"]
    assert asyncio.run(search(official_items=False)).entries == ()


def _nothing_embeds() -> NoReturn:
    raise AssertionError("no text is embedded")


@pytest.mark.parametrize(
    "other",
    [
        Haystack("h", (Item("a", "t", "g", metadata={"evidence": False}),), (_QUERY,)),
        Haystack("h", (Item("a", "t", "other", metadata={"evidence": True}),), (_QUERY,)),
        Haystack("h", (Item("a", "t", "g", source="b", metadata={"evidence": True}),), (_QUERY,)),
        Haystack(
            "h",
            (Item("a", "t", "g", metadata={"evidence": True}),),
            (replace(_QUERY, question_date="2023/05/20"),),
        ),
    ],
    ids=["evidence", "group", "source", "question date"],
)
def test_the_digest_covers_everything_that_affects_a_score(other: Haystack) -> None:
    plain, changed = ContentDigest(), ContentDigest()
    plain.add(Haystack("h", (Item("a", "t", "g", metadata={"evidence": True}),), (_QUERY,)))
    changed.add(other)
    assert plain.hexdigest() != changed.hexdigest()
