"""Aggregates measurements of single queries into the rows of a table."""

from collections import Counter
from collections.abc import Iterable, Sequence
from math import fsum

from memconform.bench.query_scores import query_metrics
from memconform.bench.records import QueryRecord, RankingAgreement, Row, RowLatency, Scores, View
from memconform.client.timings import is_short
from memconform.contract.skipped_stages import count_skips
from memconform.contract.wire import Mode
from memconform.records import Incident
from memconform.scoring.accuracy import Estimate
from memconform.stats.clusters import mean_interval
from memconform.stats.quantiles import QuantileSummary

TIERS = ("< 300 ms", "300 to 500 ms", "500 to 1,000 ms", ">= 1,000 ms")
"""WMB-100K's speed tiers; each begins where the one before it ends."""
_TIER_ENDS = (300, 500, 1_000)
_SHOWN = 3

_QueryMetrics = tuple[str, str, dict[str, float]]
"""The cluster, the category, and the metrics of one query."""


def row(
    system: str,
    strategy: str,
    expected: int,
    records: Sequence[QueryRecord],
    incident: Incident | None,
    *,
    ks: Sequence[int],
) -> Row:
    """Aggregate the queries of one system and strategy into a row of the report.

    The row has numbers only if all `expected` queries were measured; otherwise it lists the
    incident and the most frequent failures. `ks` are the cutoffs of the metrics, ascending.
    """
    missing = expected - sum(record.error is None for record in records)
    if missing:
        why = [f"{incident.code}: {incident.message}"] if incident else []
        # Queries that an incident invalidated say no more than it does.
        known = incident.code if incident else None
        others = [r for r in records if r.error is not None and r.error.code != known]
        return Row(
            system=system,
            strategy=strategy,
            measured=False,
            why=why + _failures(others),
            queries=expected,
            not_measured=missing,
        )
    names = dict.fromkeys(name for record in records for name in record.views)
    return Row(
        system=system,
        strategy=strategy,
        measured=True,
        queries=expected,
        not_measured=0,
        views={name: _view(name, records, ks) for name in names},
        latency=_latency(records),
        short_latencies=sum(is_short(r.latency_ms, r.daemon_ms) for r in records),
        rising_scores=sum(record.rises for record in records),
        short_rankings=sum(record.is_short for record in records),
        skipped_stages=count_skips(record.skipped_stage for record in records),
        null_lists=sum(record.null_chunks for record in records),
        empty_rankings=sum(not record.ranking for record in records),
        unanswered=sum(record.answer_error is not None for record in records),
    )


def _failures(records: Iterable[QueryRecord]) -> list[str]:
    """One line per kind of failure, with its count and first occurrence."""
    failed = [(record.query, record.error) for record in records if record.error]
    counts = Counter(error.code for _, error in failed)
    first = {error.code: (query, error) for query, error in reversed(failed)}
    return [
        f"{count} of {code}, the first {first[code][0]}: {first[code][1].message}"
        for code, count in counts.most_common(_SHOWN)
    ]


def _view(name: str, records: Sequence[QueryRecord], ks: Sequence[int]) -> View:
    rows: list[_QueryMetrics] = [
        (record.cluster_name, record.category, query_metrics(record, relevance, ks))
        for record in records
        if (relevance := record.views.get(name)) is not None
    ]
    categories = sorted({category for _, category, _ in rows if category})
    overall = _scores(rows)
    return View(
        queries=overall.queries,
        metrics=overall.metrics,
        by_category={
            category: _scores([row for row in rows if row[1] == category])
            for category in categories
        },
    )


def _scores(rows: Sequence[_QueryMetrics]) -> Scores:
    clusters = [cluster for cluster, _, _ in rows]
    columns = {name: [values[name] for _, _, values in rows] for name in rows[0][2]}
    estimates = {name: _estimate(values, clusters) for name, values in columns.items()}
    return Scores(queries=len(rows), metrics=estimates)


def _estimate(values: Sequence[float], clusters: Sequence[str]) -> Estimate:
    low, high = mean_interval(values, clusters)
    return Estimate(value=100 * fsum(values) / len(values), low=100 * low, high=100 * high)


def _latency(records: Sequence[QueryRecord]) -> RowLatency | None:
    latencies = [record.latency_ms for record in records if record.latency_ms is not None]
    answer = QuantileSummary.of(latencies)
    if answer is None:
        return None
    tiers = Counter(sum(value >= end for end in _TIER_ENDS) for value in latencies)
    return RowLatency(
        answer=answer,
        search=QuantileSummary.of(r.search_ms for r in records if r.search_ms is not None),
        tiers={name: tiers[tier] / len(latencies) for tier, name in enumerate(TIERS)},
    )


def with_added_latency(rows: Sequence[Row], records: Sequence[QueryRecord]) -> list[Row]:
    """Add to hybrid-rerank rows how much longer each query takes than with hybrid."""
    latencies = {(r.system, r.strategy, r.query): r.latency_ms for r in records}
    extended = []
    for each in rows:
        plain = each.strategy.replace(Mode.HYBRID_RERANK, Mode.HYBRID, 1)
        added = [
            slow - fast
            for (system, strategy, query), slow in latencies.items()
            if (system, strategy) == (each.system, each.strategy) != (system, plain)
            and slow is not None
            and (fast := latencies.get((system, plain, query))) is not None
        ]
        summary = QuantileSummary.of(added) if each.measured else None
        extended.append(each.model_copy(update={"rerank_adds_ms": summary}))
    return extended


def ranking_agreement(
    strategy: str, systems: Sequence[str], records: Iterable[QueryRecord]
) -> RankingAgreement | None:
    """How many rankings are equal on all systems; None for fewer than two systems."""
    if len(systems) < 2:
        return None
    by_query: dict[str, dict[str, list[str]]] = {}
    for record in records:
        if record.strategy == strategy and record.error is None and record.system in systems:
            by_query.setdefault(record.query, {})[record.system] = record.ranking
    compared = [
        (query, rankings) for query, rankings in by_query.items() if len(rankings) == len(systems)
    ]
    first = systems[0]
    differs = [
        f"{query}: {other} differs from {first} at rank"
        f" {_first_different_rank(rankings[first], rankings[other])}"
        for query, rankings in compared
        for other in systems[1:]
        if rankings[other] != rankings[first]
    ]
    equal = sum(
        len({tuple(ranking) for ranking in rankings.values()}) == 1 for _, rankings in compared
    )
    return RankingAgreement(
        strategy=strategy,
        systems=list(systems),
        compared=len(compared),
        equal=equal,
        differs=differs[:_SHOWN],
    )


def _first_different_rank(one: Sequence[str], other: Sequence[str]) -> int:
    pairs = enumerate(zip(one, other, strict=False), 1)
    return next((rank for rank, (a, b) in pairs if a != b), min(len(one), len(other)) + 1)
