"""Similarity of two rankings. Items are compared by equality; a repeated item counts once."""

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from itertools import groupby
from math import comb, prod, sqrt
from operator import itemgetter

PERSISTENCE = 0.9
"""The parameter p of rank-biased overlap; at 0.9 the first ten ranks carry 86 % of the weight."""

SCORE_TOLERANCE = 1e-6
"""Largest difference between equal scores: they are rounded to 1e-9, and languages still differ in
the last bits of a logarithm."""


def overlap_at(one: Sequence[Hashable], other: Sequence[Hashable], k: int) -> float:
    """The share of the first k items that both rankings have; 1 if both are empty.

    If both rankings are shorter than k, the share is that of the longer one's items.
    """
    first, second = set(one[:k]), set(other[:k])
    size = max(len(first), len(second))
    return len(first & second) / size if size else 1.0


def jaccard(one: Sequence[Hashable], other: Sequence[Hashable]) -> float:
    """Items in both rankings divided by items in either (Jaccard 1912); 1 if both are empty."""
    first, second = set(one), set(other)
    union = first | second
    return len(first & second) / len(union) if union else 1.0


def rbo(one: Sequence[Hashable], other: Sequence[Hashable], p: float = PERSISTENCE) -> float:
    """Rank-biased overlap, extrapolated (Webber, Moffat & Zobel 2010, equation 32), in [0, 1].

    1 if both are empty, 0 if only one is.

    Raises:
        ValueError: unless 0 < p < 1.
    """
    if not 0 < p < 1:
        raise ValueError(f"a persistence of {p} is outside (0, 1)")
    short, long = sorted((list(dict.fromkeys(one)), list(dict.fromkeys(other))), key=len)
    s, l = len(short), len(long)  # noqa: E741 - the paper's names
    if s == 0:
        return float(l == 0)
    seen_short: set[Hashable] = set()
    seen_long: set[Hashable] = set()
    overlap, total, at_short = 0, 0.0, 0
    for depth, item in enumerate(long, 1):
        seen_long.add(item)
        overlap += item in seen_short
        if depth <= s:
            seen_short.add(short[depth - 1])
            overlap += short[depth - 1] in seen_long
            at_short = overlap
        agreement = overlap / depth
        if depth > s:
            agreement += at_short * (depth - s) / (s * depth)
        total += agreement * p**depth
    return (1 - p) / p * total + ((overlap - at_short) / l + at_short / s) * p**l


def kendall_tau_b(one: Mapping[str, float], other: Mapping[str, float]) -> float | None:
    """Rank correlation of the scores of the items in both, adjusted for ties (Kendall 1945).

    In [-1, 1]; None if fewer than two items are in both, or if all scores of one side are tied.
    """
    scores = sorted((one[item], other[item]) for item in one if item in other)
    concordance = 0
    earlier: list[float] = []
    """Sorted second scores of the items whose first score is lower."""
    for _, ties in groupby(scores, key=itemgetter(0)):
        seconds = [second for _, second in ties]
        for second in seconds:
            below = bisect_left(earlier, second)
            above = len(earlier) - bisect_right(earlier, second)
            concordance += below - above
        for second in seconds:
            insort(earlier, second)
    untied = [_untied_pairs(side) for side in zip(*scores, strict=True)]
    norm = sqrt(prod(untied))
    return concordance / norm if untied and norm else None


def _untied_pairs(scores: Sequence[float]) -> int:
    """The number of pairs of unequal scores."""
    return comb(len(scores), 2) - sum(comb(count, 2) for count in Counter(scores).values())
