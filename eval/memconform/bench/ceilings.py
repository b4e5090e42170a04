"""Ceilings: what the right evidence scores by a benchmark's own, partly wrong gold.

A system above a ceiling owes part of its raw score to evidence that does not answer the question.
"""

from collections.abc import Iterable, Sequence
from statistics import fmean

from memconform.bench.records import AboveCeiling, Ceiling, QueryRecord
from memconform.bench.tasks import ALL, UNDISPUTED
from memconform.scoring.retrieval import metrics

CORRECTED = "corrected gold"
"""The scope of the queries whose gold the errata correct; others are `all` and categories."""

FEWEST_CORRECTED = 5
"""Queries with corrected gold below which a scope has no ceiling: that all of fewer than five come
out one way is no less likely than 1 in 20 (sign test, 2**-5 = 0.03 and 2**-4 = 0.06)."""

_TOLERANCE = 1e-9
"""Percent; means of equal values differ by rounding."""


def ceilings(records: Iterable[QueryRecord], ks: Sequence[int]) -> list[Ceiling]:
    """The raw score, in percent, of rankings that consist of the right evidence alone.

    `records` are those of one measured row. Evidence is right by the corrected gold, and for other
    queries, disputed ones included, by the raw gold. Scopes with fewer than `FEWEST_CORRECTED`
    corrections are omitted.
    """
    scored = list(records)
    return [
        Ceiling(
            scope=scope,
            queries=len(members),
            corrected=sum(map(_is_corrected, members)),
            metrics=_means(((_right(each), _raw(each)) for each in members), ks),
        )
        for scope, members in _scopes(scored).items()
    ]


def above_ceilings(
    records: Iterable[QueryRecord], limits: Iterable[Ceiling], ks: Sequence[int]
) -> list[AboveCeiling]:
    """The raw scores of a measured row that exceed a ceiling."""
    scopes = _scopes(list(records))
    above = []
    for limit in limits:
        members = scopes.get(limit.scope, [])
        scores = _means(((each.ranking, _raw(each)) for each in members), ks)
        above += [
            AboveCeiling(
                scope=limit.scope,
                metric=name,
                score=score,
                ceiling=limit.metrics[name],
                corrected=limit.corrected,
            )
            for name, score in scores.items()
            if score > limit.metrics[name] + _TOLERANCE
        ]
    return above


def _raw(record: QueryRecord) -> list[str]:
    return record.views[ALL].gold


def _right(record: QueryRecord) -> list[str]:
    """The right evidence, first the part that the raw gold names: no order scores higher by it."""
    view, raw = record.views.get(UNDISPUTED), _raw(record)
    return raw if view is None else sorted(view.gold, key=lambda item: item not in raw)


def _is_corrected(record: QueryRecord) -> bool:
    return set(_right(record)) != set(_raw(record))


def _scopes(records: Sequence[QueryRecord]) -> dict[str, list[QueryRecord]]:
    """The queries with gold by scope: all, categories, and those whose gold is corrected."""
    scored = [record for record in records if ALL in record.views]
    corrected = [record for record in scored if _is_corrected(record)]
    categories = sorted({record.category for record in corrected} - {"", ALL, CORRECTED})
    scopes = {ALL: scored if corrected else [], CORRECTED: corrected}
    scopes |= {name: [r for r in scored if r.category == name] for name in categories}
    return {
        name: members
        for name, members in scopes.items()
        if sum(map(_is_corrected, members)) >= FEWEST_CORRECTED
    }


def _means(
    pairs: Iterable[tuple[Sequence[str], Sequence[str]]], ks: Sequence[int]
) -> dict[str, float]:
    """Mean metrics in percent over pairs of a ranking and its gold."""
    values = [metrics(ranking, gold, ks) for ranking, gold in pairs]
    return {name: 100 * fmean(each[name] for each in values) for name in values[0]}
