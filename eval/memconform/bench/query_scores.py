"""The metrics of one query in one view."""

from collections.abc import Sequence

from memconform.bench.records import QueryRecord, Relevance
from memconform.scoring.retrieval import metrics, official_metrics


def query_metrics(record: QueryRecord, relevance: Relevance, ks: Sequence[int]) -> dict[str, float]:
    """Every metric at every k, in [0, 1]; by the benchmark's released code where it has one."""
    ranking = record.ranking if relevance.ranking is None else relevance.ranking
    values = metrics(list(dict.fromkeys(ranking)), relevance.gold, ks)
    if (official := relevance.official) is not None:
        values |= official_metrics(
            ranking,
            relevance.gold,
            ks,
            relevant=official.relevant,
            by_session=official.by_session,
        )
    return values


def scored_ranking(record: QueryRecord, relevance: Relevance) -> list[str]:
    """The distinct ids that a view ranks, best first."""
    return list(dict.fromkeys(record.ranking if relevance.ranking is None else relevance.ranking))


def first_gold_rank(ranking: Sequence[str], gold: Sequence[str]) -> int | None:
    """The rank of the first gold item, from 1; None if none is ranked."""
    return next((rank for rank, item in enumerate(ranking, 1) if item in gold), None)
