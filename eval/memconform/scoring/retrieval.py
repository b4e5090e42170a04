"""Retrieval metrics at a cutoff k, with binary relevance.

`ranking` holds ids, best first; `gold` holds the relevant ids. Every metric lies in [0, 1].
"""

import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from math import log2

_Gain = Callable[[int], float]
"""The gain of a relevant document at a rank, counted from 1."""


def recall_any(ranking: Sequence[str], gold: Collection[str], k: int) -> float:
    """1.0 if any relevant id is among the first k (LongMemEval, Wu et al. 2025), else 0.0."""
    return float(not set(ranking[:k]).isdisjoint(gold))


def recall_all(ranking: Sequence[str], gold: Collection[str], k: int) -> float:
    """1.0 if all relevant ids are among the first k (LongMemEval), else 0.0."""
    return float(set(gold) <= set(ranking[:k]))


def precision(ranking: Sequence[str], gold: Collection[str], k: int) -> float:
    """The share of the first k ranks that are relevant; missing ranks count as irrelevant."""
    return len(set(gold) & set(ranking[:k])) / k


def reciprocal_rank(ranking: Sequence[str], gold: Collection[str], k: int) -> float:
    """1 / rank of the first relevant id among the first k; 0.0 if there is none."""
    ranks = (rank for rank, item in enumerate(ranking[:k], 1) if item in gold)
    return 1 / next(ranks, float("inf"))


def ndcg(ranking: Sequence[str], gold: Collection[str], k: int) -> float:
    """nDCG@k with the discount log2(rank + 1) (Järvelin & Kekäläinen 2002), as in trec_eval."""
    return _normalized(ranking, gold, k, lambda rank: 1 / log2(rank + 1))


def ndcg_any(ranking: Sequence[str], gold: Collection[str], k: int) -> float:
    """ndcg_any@k as in LongMemEval's released code: rank 1 gains 1, later ranks 1 / log2(rank)."""
    return _normalized(ranking, gold, k, _gain_any)


def _gain_any(rank: int) -> float:
    return 1 / log2(max(rank, 2))


def _normalized(
    ranking: Sequence[str], gold: Collection[str], k: int, gain: _Gain, relevant: int | None = None
) -> float:
    """The gain of the first k, relative to the best possible ranking.

    `relevant` is the number of relevant entries, by default that of distinct relevant ids.
    """
    total = sum(gain(rank) for rank, item in enumerate(ranking[:k], 1) if item in gold)
    best = min(len(set(gold)) if relevant is None else relevant, k)
    return total / sum(gain(rank) for rank in range(1, best + 1))


def official_metrics(
    ranking: Sequence[str],
    gold: Collection[str],
    ks: Iterable[int],
    *,
    relevant: int,
    by_session: bool,
) -> dict[str, float]:
    """recall_any, recall_all and ndcg_any at every k, as in LongMemEval's released code.

    Ids in `ranking` may repeat, and every entry takes a rank. With `by_session`, `ranking` names
    the session of each turn, and is cut off where it contains k sessions; the nDCG is still that
    of its turns. `relevant` is the number of relevant entries of the index.

    Raises:
        ValueError: if there are fewer relevant entries than relevant ids.
    """
    if not len(set(gold)) <= relevant:
        raise ValueError(f"{relevant} entries for {len(set(gold))} relevant ids")
    values = {}
    for k in sorted(set(ks)):
        cut = _length_with(k, ranking) if by_session else k
        values[f"recall_any@{k}"] = recall_any(ranking, gold, cut)
        values[f"recall_all@{k}"] = recall_all(ranking, gold, cut)
        values[f"ndcg_any@{k}"] = _normalized(ranking, gold, cut, _gain_any, relevant)
    return values


def _length_with(k: int, ranking: Sequence[str]) -> int:
    """The length of the shortest beginning of `ranking` that contains k distinct ids.

    A ranking with fewer of them is not cut off: it misses whatever it does not contain.
    """
    seen: set[str] = set()
    for length, each in enumerate(ranking, 1):
        seen.add(each)
        if len(seen) == k:
            return length
    return sys.maxsize


RATES = ("recall_any", "recall_all")
"""Metrics that are either 0 or 1 for each query."""

_AT_K = {
    "recall_any": recall_any,
    "recall_all": recall_all,
    "ndcg": ndcg,
    "ndcg_any": ndcg_any,
    "precision": precision,
}


def metrics(ranking: Sequence[str], gold: Collection[str], ks: Iterable[int]) -> dict[str, float]:
    """Compute every metric at every k, and `mrr` at the largest k.

    Keys look like `recall_any@5`; values lie in [0, 1].

    Raises:
        ValueError: if `gold` or `ks` is empty, an id is ranked twice, or a k is below 1.
    """
    cuts = sorted(set(ks))
    if not gold or not cuts or cuts[0] < 1 or len(set(ranking)) != len(ranking):
        raise ValueError(
            "metrics need a ranking of distinct ids, relevant ids, and cutoffs of at least 1"
        )
    values = {
        f"{name}@{k}": metric(ranking, gold, k) for name, metric in _AT_K.items() for k in cuts
    }
    return values | {f"mrr@{cuts[-1]}": reciprocal_rank(ranking, gold, cuts[-1])}
