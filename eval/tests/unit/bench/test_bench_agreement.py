"""The verdict that a bench ends with."""

import pytest

from memconform.bench.records import BenchPair, QueryRecord, Relevance, Row
from memconform.bench.system_agreement import compare_systems, compare_with_bm25
from memconform.records import Failure
from memconform.reports.parity import contrast_line
from memconform.stats.paired_comparison import ParityVerdict
from tests.unit.bench_results import source


def _record(
    system: str,
    query: int,
    ranking: list[str],
    error: Failure | None = None,
    haystacks: int = 1_000,
) -> QueryRecord:
    return QueryRecord(
        system=system,
        strategy="bm25",
        haystack=f"h{query % haystacks}",
        query=f"q{query}",
        category="",
        views={"all": Relevance(gold=["a"])},
        ranking=ranking,
        latency_ms=1.0,
        search_ms=None,
        error=error,
    )


def _judged(records: list[QueryRecord], expected: int) -> BenchPair:
    [pair] = compare_systems("bm25", ["one", "other"], records, k=2, source=source(expected))
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


def _missed(haystacks: int, queries: int = 60) -> BenchPair:
    """Only the first system finds the gold of any query."""
    records = [_record("one", q, ["a"], haystacks=haystacks) for q in range(queries)]
    records += [_record("other", q, ["b", "c"], haystacks=haystacks) for q in range(queries)]
    return _judged(records, queries)


def test_haystacks_of_one_query_are_compared_by_query() -> None:
    contrast = _missed(60).contrast
    assert (contrast.clusters, contrast.sign_flip_p) == (None, None)
    assert contrast.holm_p == contrast.mid_p < 1e-15


def test_queries_of_one_haystack_are_not_independent() -> None:
    contrast = _missed(10).contrast
    assert (contrast.verdict, contrast.clusters) == (ParityVerdict.DRIFT, 10)
    assert contrast.sign_flip_p == contrast.holm_p == 2 / 2**10
    assert contrast.mid_p < 1e-15


@pytest.mark.parametrize(
    ("haystacks", "these"), [(1, "about this haystack alone"), (5, "about these 5 haystacks alone")]
)
def test_few_haystacks_show_nothing_about_others(haystacks: int, these: str) -> None:
    """Every query is lost, and yet it is not drift: the same system may win the next haystack."""
    contrast = _missed(haystacks).contrast
    assert (contrast.verdict, contrast.clusters) == (ParityVerdict.INCONCLUSIVE, haystacks)
    assert (contrast.settled_by, contrast.settled_by_clusters) == (None, None)
    line = contrast_line("one", "other", contrast, "haystack")
    assert f"60 questions {these}, where pass rates may differ by +91.4 to +100.0" in line
    assert line.endswith("a verdict needs 6 haystacks")


def test_a_dataset_may_say_itself_which_queries_are_independent() -> None:
    records = [_record("one", q, ["a"], haystacks=1) for q in range(60)]
    records += [_record("other", q, ["b", "c"], haystacks=1) for q in range(60)]
    named = [r.model_copy(update={"cluster": r.query}) for r in records]
    assert _judged(named, 60).contrast.verdict is ParityVerdict.DRIFT
    named = [r.model_copy(update={"cluster": f"c{int(r.query[1:]) % 7}"}) for r in records]
    assert _judged(named, 60).contrast.clusters == 7


@pytest.mark.parametrize(
    ("clusters", "ending"),
    [
        (None, " haystacks would settle it"),
        (10_000, " haystacks would settle it"),
        (10, " haystacks would settle it, but the dataset has only 10"),
    ],
)
def test_no_more_haystacks_are_suggested_than_there_are(clusters: int | None, ending: str) -> None:
    records = [_record("one", q, ["a"], haystacks=10) for q in range(200)]
    records += [
        _record("other", q, ["a"] if q % 20 else ["b", "c"], haystacks=10) for q in range(200)
    ]
    records = [
        r.model_copy(update={"ranking": ["b", "c"]})
        if r.query in {f"q{n}" for n in (1, 5, 9, 14, 18, 27, 33)} and r.system == "one"
        else r
        for r in records
    ]
    data = source(200).model_copy(update={"all_with_gold": 200, "all_clusters": clusters})
    [pair] = compare_systems("bm25", ["one", "other"], records, k=2, source=data)
    assert pair.contrast.settled_by_clusters is not None
    assert contrast_line("one", "other", pair.contrast, "haystack").endswith(ending)


def test_no_more_questions_are_suggested_than_there_are() -> None:
    records = [_record("one", q, ["a"] if q else ["b", "c"]) for q in range(40)]
    records += [_record("other", q, ["a"] if q != 1 else ["b", "c"]) for q in range(40)]
    data = source(40).model_copy(update={"all_with_gold": 50})
    [pair] = compare_systems("bm25", ["one", "other"], records, k=2, source=data)
    line = contrast_line("one", "other", pair.contrast)
    assert pair.contrast.settled_by is not None
    assert pair.contrast.settled_by > 50
    assert line.endswith(" questions would settle it, but the dataset has only 50")


def test_a_verdict_that_needs_more_haystacks_than_there_are_says_so() -> None:
    contrast = _missed(3).contrast.model_copy(update={"dataset_clusters": 3})
    line = contrast_line("one", "other", contrast, "haystack")
    assert line.endswith("a verdict needs 6 haystacks, but the dataset has only 3")


def _row(system: str, strategy: str = "") -> Row:
    return Row(system=system, strategy=strategy, measured=True, queries=30, not_measured=0)


def test_each_row_is_compared_with_that_of_bm25_alone() -> None:
    records = [_record("go", q, ["a", "b"]) for q in range(30)]
    for name, ranking in (("worse", ["b", "c"]), ("alike", ["a", "b"])):
        records += [
            _record(name, q, ranking).model_copy(update={"strategy": ""}) for q in range(30)
        ]
    rows = [_row("worse"), _row("go", "bm25"), _row("alike")]
    worse, alike = compare_with_bm25(rows, records, k=2, source=source(30))
    assert (worse.first, worse.second, worse.second_strategy) == ("worse", "go", "bm25")
    assert (worse.contrast.verdict, worse.contrast.second_only) == (ParityVerdict.DRIFT, 30)
    assert (alike.first, alike.contrast.verdict) == ("alike", ParityVerdict.IDENTICAL)
    # Holm: the smaller p counts twice, because two rows were compared.
    assert worse.contrast.holm_p == pytest.approx(2 * worse.contrast.mid_p)
    assert compare_with_bm25([_row("worse"), _row("alike")], records, k=2, source=source(30)) == []
