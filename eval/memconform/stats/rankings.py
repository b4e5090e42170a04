"""How alike two rankings are. Items are compared by equality; one that stands twice counts once."""

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from itertools import groupby
from math import comb, prod, sqrt
from operator import itemgetter

PERSISTENCE = 0.9
"""Of rank-biased overlap: the first ten ranks then carry 86 % of the weight."""


def overlap_at(one: Sequence[Hashable], other: Sequence[Hashable], k: int) -> float:
    """The share of the first k items, or of as many as the longer ranking has, that are in both.

    1 where both are empty.
    """
    first, second = set(one[:k]), set(other[:k])
    most = max(len(first), len(second))
    return len(first & second) / most if most else 1.0


def jaccard(one: Sequence[Hashable], other: Sequence[Hashable]) -> float:
    """Items in both rankings, of those in either (Jaccard 1912); 1 where both are empty."""
    first, second = set(one), set(other)
    either = first | second
    return len(first & second) / len(either) if either else 1.0


def rbo(one: Sequence[Hashable], other: Sequence[Hashable], p: float = PERSISTENCE) -> float:
    """Rank-biased overlap, extrapolated (Webber, Moffat & Zobel 2010, equation 32), in [0, 1].

    1 where both are empty, 0 where one is.

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
    """Rank correlation of the scores of items in both, ties counted as such (Kendall 1945).

    In [-1, 1]; None with fewer than two items in both, or where one side ties all of them.
    """
    scores = sorted((one[item], other[item]) for item in one if item in other)
    concordance = 0
    earlier: list[float] = []
    """The second score of items whose first is less, in order."""
    for _, tied in groupby(scores, key=itemgetter(0)):
        seconds = [second for _, second in tied]
        for second in seconds:
            below = bisect_left(earlier, second)
            above = len(earlier) - bisect_right(earlier, second)
            concordance += below - above
        for second in seconds:
            insort(earlier, second)
    untied = [_untied(side) for side in zip(*scores, strict=True)]
    norm = sqrt(prod(untied))
    return concordance / norm if untied and norm else None


def _untied(scores: Sequence[float]) -> int:
    """How many pairs of scores differ."""
    return comb(len(scores), 2) - sum(comb(count, 2) for count in Counter(scores).values())
