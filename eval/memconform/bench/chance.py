"""The level of chance: what a random ranking of the items that are searched scores.

Where a haystack consists of little else than evidence, as in LongMemEval's oracle file, every
ranking scores high, and scores do not tell systems apart.
"""

from collections.abc import Iterable, Sequence
from math import prod
from statistics import fmean

from memconform.bench.records import ChanceLevel, QueryRecord


def chance_levels(records: Iterable[QueryRecord], ks: Sequence[int]) -> dict[str, ChanceLevel]:
    """The level of each view, from the records of one measured row.

    A view is omitted if a record does not say how many items were searched, as those of earlier
    versions, or if it scores something else than items.
    """
    searched: dict[str, list[tuple[int, int, int] | None]] = {}
    for record in records:
        for name, relevance in record.views.items():
            counts = None
            if record.searched is not None and relevance.searched_gold is not None:
                counts = (record.searched, relevance.searched_gold, len(set(relevance.gold)))
            searched.setdefault(name, []).append(counts)
    levels = {}
    for name, found in searched.items():
        known = [counts for counts in found if counts is not None]
        if len(known) == len(found):
            levels[name] = ChanceLevel(
                every_item_relevant=all(items == relevant for items, relevant, _ in known),
                metrics={
                    f"{metric}@{k}": 100 * fmean(chance(*counts, k) for counts in known)
                    for metric, chance in (
                        ("recall_any", chance_of_any),
                        ("recall_all", chance_of_all),
                    )
                    for k in ks
                },
            )
    return levels


def chance_of_any(items: int, relevant: int, _gold: int, k: int) -> float:
    """The probability that k of `items`, drawn without replacement, have a relevant one.

    By the hypergeometric distribution: 1 - C(items - relevant, k) / C(items, k).
    """
    return 1 - prod(max(items - k - drawn, 0) / (items - drawn) for drawn in range(relevant))


def chance_of_all(items: int, relevant: int, gold: int, k: int) -> float:
    """The probability that k of `items` have all `gold`, of which `relevant` are among them."""
    if relevant < gold:
        return 0.0
    return prod(max(min(k, items) - drawn, 0) / (items - drawn) for drawn in range(relevant))
