"""The verdict that a bench ends with."""

from memconform.bench.records import BenchPair, QueryRecord, Relevance
from memconform.bench.system_agreement import compare_systems
from memconform.parity.records import ParityVerdict
from memconform.records import Failure


def _record(
    system: str, query: int, ranking: list[str], error: Failure | None = None
) -> QueryRecord:
    return QueryRecord(
        system=system,
        strategy="bm25",
        haystack="h",
        query=f"q{query}",
        category="",
        views={"all": Relevance(gold=["a"])},
        ranking=ranking,
        latency_ms=1.0,
        search_ms=None,
        error=error,
    )


def _judged(records: list[QueryRecord], expected: int) -> BenchPair:
    [pair] = compare_systems("bm25", ["one", "other"], records, k=2, expected=expected)
    return pair


def test_equal_rankings_of_every_query_are_identical() -> None:
    records = [_record(s, q, ["a", "b"]) for s in ("one", "other") for q in range(3)]
    assert _judged(records, 3).contrast.verdict is ParityVerdict.IDENTICAL


def test_a_query_that_no_system_reached_prevents_identical() -> None:
    records = [_record(s, q, ["a", "b"]) for s in ("one", "other") for q in range(3)]
    contrast = _judged(records, 4).contrast
    assert (contrast.verdict, contrast.compared) == (ParityVerdict.INCONCLUSIVE, 3)


def test_a_failed_query_is_neither_hit_nor_miss() -> None:
    failure = Failure(code="x", message="y")
    records = [_record("one", 0, ["a"]), _record("other", 0, [], failure)]
    contrast = _judged(records, 1).contrast
    assert (contrast.verdict, contrast.compared) == (ParityVerdict.INCONCLUSIVE, 0)


def test_gold_below_the_cut_is_missed() -> None:
    records = [_record("one", q, ["a", "b", "c"]) for q in range(30)]
    records += [_record("other", q, ["b", "c", "a"]) for q in range(30)]
    agreement = _judged(records, 30)
    assert (agreement.metric, agreement.contrast.first_only) == ("recall_any@2", 30)
    assert agreement.contrast.verdict is ParityVerdict.DRIFT
