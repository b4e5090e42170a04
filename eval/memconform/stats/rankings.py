"""How alike two rankings are. Items are compared by equality; one that stands twice counts once."""

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

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
    shared = [item for item in one if item in other]
    signs = []
    for scores in (one, other):
        values = np.array([scores[item] for item in shared])
        signs.append(np.sign(values[:, None] - values[None, :]))
    first, second = signs
    norm = np.sqrt(np.sum(first**2) * np.sum(second**2))
    return float(np.sum(first * second) / norm) if norm else None
