"""The level of chance: what a random ranking of the items that are searched scores.

Where a haystack consists of little else than evidence, as in LongMemEval's oracle file, every
ranking scores high, and scores do not tell systems apart.
"""

from collections.abc import Iterable, Sequence
from math import prod
from statistics import fmean
from typing import NamedTuple

from memconform.bench.records import ChanceLevel, QueryRecord, Relevance, SessionSizes


class _QueryChance(NamedTuple):
    every_item_relevant: bool
    any_and_all: list[tuple[float, float]]
    """At every k."""


def chance_levels(records: Iterable[QueryRecord], ks: Sequence[int]) -> dict[str, ChanceLevel]:
    """The level of each view, from the records of one measured row.

    A view is omitted if a record does not say how many items were searched, or how many turns each
    session has, as those of earlier versions.
    """
    by_view: dict[str, list[_QueryChance | None]] = {}
    for record in records:
        for name, relevance in record.views.items():
            by_view.setdefault(name, []).append(_of_query(record, relevance, ks))
    levels = {}
    for name, found in by_view.items():
        known = [chance for chance in found if chance is not None]
        if len(known) == len(found):
            levels[name] = ChanceLevel(
                every_item_relevant=all(chance.every_item_relevant for chance in known),
                metrics={
                    f"{metric}@{k}": 100 * fmean(chance.any_and_all[at][i] for chance in known)
                    for i, metric in enumerate(("recall_any", "recall_all"))
                    for at, k in enumerate(ks)
                },
            )
    return levels


def _of_query(record: QueryRecord, relevance: Relevance, ks: Sequence[int]) -> _QueryChance | None:
    gold = len(set(relevance.gold))
    if (sizes := relevance.session_sizes) is not None:
        return _QueryChance(not sizes.other, chance_by_session(sizes, gold, ks))
    items, relevant = record.searched, relevance.searched_gold
    if items is None or relevant is None:
        return None
    return _QueryChance(
        items == relevant,
        [
            (chance_of_any(items, relevant, gold, k), chance_of_all(items, relevant, gold, k))
            for k in ks
        ],
    )


def chance_by_session(
    sizes: SessionSizes, gold: int, ks: Sequence[int]
) -> list[tuple[float, float]]:
    """The probabilities that the first k sessions of randomly ordered turns have any, or all, gold.

    A session is ranked where its first turn is. If every turn gets a random time in [0, 1], a
    session of n turns has begun by t with probability 1 - (1 - t)^n, independently of the others;
    conditioning on the time at which the first, or last, relevant session begins leaves an integral
    over t. It is one of a polynomial, which Gauss-Legendre quadrature of half its degree computes
    exactly.

    Args:
        sizes: the numbers of turns, all positive.
        gold: how many sessions are relevant, searched or not.
        ks: how many sessions are looked at.

    Returns:
        Both probabilities at every k.
    """
    import numpy as np  # noqa: PLC0415 - not every report has this view

    if not sizes.relevant:
        return [(0.0, 0.0)] * len(ks)
    turns = sum(sizes.relevant)
    nodes, weights = np.polynomial.legendre.leggauss((turns + sum(sizes.other)) // 2 + 1)
    # At each time: the share of time that is left, for which a turn waits.
    left, weights = (1 - nodes) / 2, weights / 2
    begun = np.zeros((max(ks), nodes.size))
    """By n: the probability that n of the other sessions have begun."""
    begun[0] = 1
    for size in sizes.other:
        waits = left**size
        begun[1:] = begun[1:] * waits + begun[:-1] * (1 - waits)
        begun[0] *= waits
    # By n: the probability that n of the others have begun before the first, or last, relevant one.
    before_first = begun @ (weights * turns * left ** (turns - 1))
    ended = 1 - left ** np.array(sizes.relevant, dtype=float)[:, None]
    last = sum(
        size * left ** (size - 1) * np.delete(ended, at, axis=0).prod(axis=0)
        for at, size in enumerate(sizes.relevant)
    )
    before_last = begun @ (weights * last)
    every = gold if len(sizes.relevant) == gold else max(ks) + 1
    return [
        (
            min(float(before_first[:k].sum()), 1.0),
            min(float(before_last[: max(k - every + 1, 0)].sum()), 1.0),
        )
        for k in ks
    ]


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
