"""Whether systems find as much as each other, query by query."""

from collections.abc import Iterable, Sequence
from itertools import combinations

from memconform.bench.records import BenchPair, QueryRecord
from memconform.bench.tasks import ALL
from memconform.parity.paired_comparison import Counts, compare_pairs
from memconform.scoring.retrieval import recall_any


def compare_systems(
    strategy: str,
    systems: Sequence[str],
    records: Iterable[QueryRecord],
    *,
    k: int,
    expected: int,
) -> list[BenchPair]:
    """The verdict on each pair of systems; a query passes where recall_any@k finds its gold.

    Queries without gold pass nowhere; their rankings must be the same all the same for systems to
    be identical, on as many queries as are expected.
    """
    by_query: dict[str, dict[str, QueryRecord]] = {}
    for record in records:
        if record.strategy == strategy and record.system in systems:
            by_query.setdefault(record.query, {})[record.system] = record
    couples = list(combinations(systems, 2))
    counts = [Counts() for _ in couples]
    # A query that no system got to has no record.
    complete = len(by_query) == expected
    for each in by_query.values():
        for (first, second), counted in zip(couples, counts, strict=True):
            _count(counted, each.get(first), each.get(second), k)
            counted.same = counted.same and complete
    return [
        BenchPair(
            strategy=strategy, first=first, second=second, metric=f"recall_any@{k}", contrast=found
        )
        for (first, second), found in zip(couples, compare_pairs(counts), strict=True)
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
        )
