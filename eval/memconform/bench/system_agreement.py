"""Paired comparison of systems by the queries whose gold they find."""

from collections.abc import Iterable, Sequence
from itertools import combinations

from memconform.bench.records import BenchPair, DataSource, QueryRecord, Row
from memconform.bench.tasks import ALL
from memconform.scoring.retrieval import recall_any
from memconform.stats.paired_comparison import Counts, compare_pairs

_RowKey = tuple[str, str]
"""A system and its strategy."""


def compare_systems(
    strategy: str,
    systems: Sequence[str],
    records: Iterable[QueryRecord],
    *,
    k: int,
    source: DataSource,
) -> list[BenchPair]:
    """The verdict on each pair of systems; a query passes if recall_any@k finds its gold.

    Queries of one haystack are not independent, unless the dataset says which are.

    Queries without gold do not count towards pass rates. Systems are identical only if the rankings
    of all selected queries are equal, including those without gold.
    """
    pairs = list(combinations([(system, strategy) for system in systems], 2))
    return _compare(pairs, records, k=k, source=source)


def compare_with_bm25(
    rows: Sequence[Row], records: Iterable[QueryRecord], *, k: int, source: DataSource
) -> list[BenchPair]:
    """The verdict on each row beside the first one that ranks by BM25; empty without such a row.

    As `compare_systems`, of rows that were measured; Holm's adjustment is for all of these pairs.
    """
    keys = [(row.system, row.strategy) for row in rows if row.measured]
    bm25 = next((key for key in keys if key[0] == "flat-bm25" or key[1] == "bm25"), None)
    if bm25 is None:
        return []
    return _compare([(key, bm25) for key in keys if key != bm25], records, k=k, source=source)


def _compare(
    pairs: Sequence[tuple[_RowKey, _RowKey]],
    records: Iterable[QueryRecord],
    *,
    k: int,
    source: DataSource,
) -> list[BenchPair]:
    compared = {key for pair in pairs for key in pair}
    by_query: dict[str, dict[_RowKey, QueryRecord]] = {}
    for record in records:
        key = (record.system, record.strategy)
        if key in compared:
            by_query.setdefault(record.query, {})[key] = record
    all_counts = [Counts() for _ in pairs]
    # A query that no system reached has no record.
    complete = len(by_query) == source.queries
    for by_row in by_query.values():
        for (first, second), counts in zip(pairs, all_counts, strict=True):
            _count(counts, by_row.get(first), by_row.get(second), k)
            counts.same = counts.same and complete
    return [
        BenchPair(
            strategy=first[1],
            first=first[0],
            second=second[0],
            second_strategy=second[1],
            metric=f"recall_any@{k}",
            contrast=comparison.model_copy(update=source.size()),
        )
        for (first, second), comparison in zip(pairs, compare_pairs(all_counts), strict=True)
    ]


def _count(counts: Counts, one: QueryRecord | None, other: QueryRecord | None, k: int) -> None:
    if one is None or other is None or one.error is not None or other.error is not None:
        counts.same = False
        return
    counts.same = counts.same and one.ranking == other.ranking
    if ALL in one.views:
        gold = one.views[ALL].gold
        counts.add(
            first=bool(recall_any(one.ranking, gold, k)),
            second=bool(recall_any(other.ranking, gold, k)),
            cluster=one.cluster_name,
        )
