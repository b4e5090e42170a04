"""Metrics of a ranking against the ids that are relevant; relevance is binary throughout."""

from collections.abc import Callable, Collection, Iterable, Sequence
from math import log2

_Gain = Callable[[int], float]
"""What a relevant document at a rank, from 1, is worth."""


def recall_any(ranking: Sequence[str], gold: Collection[str], k: int) -> float:
    """1.0 where any of the gold is among the first k (LongMemEval, Wu et al. 2025)."""
    return float(not set(ranking[:k]).isdisjoint(gold))


def recall_all(ranking: Sequence[str], gold: Collection[str], k: int) -> float:
    """1.0 where all of the gold is among the first k (LongMemEval)."""
    return float(set(gold) <= set(ranking[:k]))


def precision(ranking: Sequence[str], gold: Collection[str], k: int) -> float:
    """The share of k places that hold gold; a ranking that ends before k has empty places."""
    return len(set(gold) & set(ranking[:k])) / k


def reciprocal_rank(ranking: Sequence[str], gold: Collection[str], k: int) -> float:
    """1 / rank of the first gold within the first k, else 0."""
    ranks = (rank for rank, found in enumerate(ranking[:k], 1) if found in gold)
    return 1 / next(ranks, float("inf"))


def ndcg(ranking: Sequence[str], gold: Collection[str], k: int) -> float:
    """nDCG@k with the discount log2(rank + 1) (Järvelin & Kekäläinen 2002, as trec_eval has it)."""
    return _normalized(ranking, gold, k, lambda rank: 1 / log2(rank + 1))


def ndcg_longmemeval(ranking: Sequence[str], gold: Collection[str], k: int) -> float:
    """ndcg_any@k of LongMemEval's released code: rank 1 counts 1, later ones 1 / log2(rank)."""
    return _normalized(ranking, gold, k, lambda rank: 1 / log2(max(rank, 2)))


def _normalized(ranking: Sequence[str], gold: Collection[str], k: int, gain: _Gain) -> float:
    """The gain of the first k over that of the best possible ranking; ids stand there once."""
    gained = sum(gain(rank) for rank, found in enumerate(ranking[:k], 1) if found in gold)
    return gained / sum(gain(rank) for rank in range(1, min(len(set(gold)), k) + 1))


RATES = ("recall_any", "recall_all")
"""Metrics that are 0 or 1 a query."""

_AT_K = {
    "recall_any": recall_any,
    "recall_all": recall_all,
    "ndcg": ndcg,
    "ndcg_lme": ndcg_longmemeval,
    "precision": precision,
}


def metrics(ranking: Sequence[str], gold: Collection[str], ks: Iterable[int]) -> dict[str, float]:
    """Every metric at every k, named as `recall_any@5`, and `mrr` at the largest k; in [0, 1].

    Raises:
        ValueError: without gold, an id that is ranked twice, or a k below 1: nothing is measured.
    """
    cuts = sorted(set(ks))
    if not gold or not cuts or cuts[0] < 1 or len(set(ranking)) != len(ranking):
        raise ValueError("a ranking of distinct ids, gold, and ks of at least 1 are wanted")
    found = {
        f"{name}@{k}": metric(ranking, gold, k) for name, metric in _AT_K.items() for k in cuts
    }
    return found | {f"mrr@{cuts[-1]}": reciprocal_rank(ranking, gold, cuts[-1])}
