"""Paired comparison of systems by the queries whose gold they find."""

from collections.abc import Iterable, Sequence
from itertools import combinations

from memconform.bench.records import BenchPair, DataSource, QueryRecord
from memconform.bench.tasks import ALL
from memconform.scoring.retrieval import recall_any
from memconform.stats.paired_comparison import Counts, compare_pairs


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
    by_query: dict[str, dict[str, QueryRecord]] = {}
    for record in records:
        if record.strategy == strategy and record.system in systems:
            by_query.setdefault(record.query, {})[record.system] = record
    pairs = list(combinations(systems, 2))
    all_counts = [Counts() for _ in pairs]
    # A query that no system reached has no record.
    complete = len(by_query) == source.queries
    for by_system in by_query.values():
        for (first, second), counts in zip(pairs, all_counts, strict=True):
            _count(counts, by_system.get(first), by_system.get(second), k)
            counts.same = counts.same and complete
    return [
        BenchPair(
            strategy=strategy,
            first=first,
            second=second,
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
