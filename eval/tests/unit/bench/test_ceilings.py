"""Ceilings of wrong gold."""

import pytest

from memconform.bench.ceilings import CORRECTED, FEWEST_CORRECTED, above_ceilings, ceilings
from memconform.bench.records import QueryRecord, Relevance
from memconform.bench.tasks import ALL, UNDISPUTED


def _record(
    query: str, ranking: str, raw: str, right: str | None, category: str = ""
) -> QueryRecord:
    views = {ALL: Relevance(gold=list(raw))}
    if right is not None:
        views[UNDISPUTED] = Relevance(gold=list(right))
    return QueryRecord(
        system="go",
        strategy="bm25",
        haystack="h",
        query=query,
        category=category,
        views=views if raw else {},
        ranking=list(ranking),
        latency_ms=1,
        search_ms=None,
    )


def _times(*records: QueryRecord) -> list[QueryRecord]:
    """As many of each as a scope needs."""
    return [
        record.model_copy(update={"query": f"{record.query}-{n}"})
        for record in records
        for n in range(FEWEST_CORRECTED)
    ]


def test_the_ceiling_is_the_raw_score_of_the_right_evidence() -> None:
    records = _times(
        # Cites a wrong turn; cites one of two; right; disputed; without gold.
        _record("q1", "xa", raw="x", right="a", category="c"),
        _record("q2", "ab", raw="a", right="ba", category="d"),
        _record("q3", "za", raw="a", right="a", category="c"),
        _record("q4", "z", raw="a", right=None, category="e"),
        _record("q5", "a", raw="", right=None),
    )
    limits = {each.scope: each for each in ceilings(records, [1, 2])}
    assert {name: (each.queries, each.corrected) for name, each in limits.items()} == {
        ALL: (20, 10),
        CORRECTED: (10, 10),
        "c": (10, 5),
        "d": (5, 5),
    }
    # Of several right items the best order counts, not that of the errata file.
    assert limits[CORRECTED].metrics["recall_any@1"] == 50
    assert limits[CORRECTED].metrics["recall_any@2"] == 50
    assert limits[ALL].metrics["recall_any@1"] == 75
    assert limits["c"].metrics["mrr@2"] == 50


def test_a_row_above_a_ceiling_is_pointed_out_and_one_below_is_not() -> None:
    wrong = _times(_record("q1", "xa", raw="x", right="a"))
    right = _times(_record("q1", "ax", raw="x", right="a"))
    limits = ceilings(wrong, [1])
    above = above_ceilings(wrong, limits, [1])
    assert [
        (each.scope, each.score, each.ceiling, each.corrected)
        for each in above
        if each.metric == "recall_any@1"
    ] == [
        (ALL, 100, 0, 5),
        (CORRECTED, 100, 0, 5),
    ]
    assert above_ceilings(right, limits, [1]) == []


def test_a_few_corrections_make_no_ceiling() -> None:
    records = _times(_record("q1", "xa", raw="x", right="a", category="c"))
    assert {each.scope for each in ceilings(records, [1])} == {ALL, CORRECTED, "c"}
    plain = _times(_record("q2", "xa", raw="x", right="x", category="c"))
    assert ceilings([*records[1:], *plain], [1]) == []


@pytest.mark.parametrize("right", ["a", None])
def test_without_a_correction_there_is_no_ceiling(right: str | None) -> None:
    assert ceilings(_times(_record("q1", "a", raw="a", right=right)), [1]) == []
