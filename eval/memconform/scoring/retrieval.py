"""Retrieval metrics at a cutoff k, with binary relevance.

`ranking` holds ids, best first; `gold` holds the relevant ids. Every metric lies in [0, 1].
"""

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


def ndcg_longmemeval(ranking: Sequence[str], gold: Collection[str], k: int) -> float:
    """ndcg_any@k as in LongMemEval's released code: rank 1 gains 1, later ranks 1 / log2(rank)."""
    return _normalized(ranking, gold, k, lambda rank: 1 / log2(max(rank, 2)))


def _normalized(ranking: Sequence[str], gold: Collection[str], k: int, gain: _Gain) -> float:
    """The gain of the first k, relative to the best possible ranking of distinct ids."""
    total = sum(gain(rank) for rank, item in enumerate(ranking[:k], 1) if item in gold)
    return total / sum(gain(rank) for rank in range(1, min(len(set(gold)), k) + 1))


RATES = ("recall_any", "recall_all")
"""Metrics that are either 0 or 1 for each query."""

_AT_K = {
    "recall_any": recall_any,
    "recall_all": recall_all,
    "ndcg": ndcg,
    "ndcg_lme": ndcg_longmemeval,
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
