"""Comparison of stored rows: strategies, systems, indexes or days, query by query."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import log
from statistics import fmean

from memconform.bench.comparability import require_comparable
from memconform.bench.comparison_records import (
    BenchDiffReport,
    BenchParityReport,
    ComparedRow,
    ItemRankings,
    QueryDifference,
    RowDiff,
    RowPair,
)
from memconform.bench.query_scores import first_gold_rank, query_metrics, scored_ranking
from memconform.bench.records import QueryRecord, Relevance
from memconform.bench.stored_rows import StoredRow
from memconform.bench.tasks import ALL
from memconform.errors import ExitCode, UsageError, gravest, nearest
from memconform.records import Incident
from memconform.scoring.retrieval import RATES
from memconform.stats.intervals import LEAST_CLUSTERS
from memconform.stats.latency_ratio import latency_ratio
from memconform.stats.paired_comparison import (
    ALPHA,
    MARGIN,
    Counts,
    PairedComparison,
    ParityVerdict,
    compare_pairs,
)
from memconform.stats.rankings import overlap_at, rbo


@dataclass(frozen=True, slots=True)
class Measure:
    """What decides whether a query passes."""

    metric: str
    """A rate at a cutoff that the rows have: `recall_any@10`."""
    view: str = ALL

    @property
    def k(self) -> int:
        return int(self.metric.partition("@")[2])

    def passes(self, record: QueryRecord, relevance: Relevance) -> bool:
        return bool(query_metrics(record, relevance, [self.k])[self.metric])

    def passed(self, stored: StoredRow) -> frozenset[str]:
        """The queries of a row that pass; meaningful only for those that were measured."""
        return frozenset(
            query
            for query, record in stored.records.items()
            if (relevance := record.views.get(self.view)) and self.passes(record, relevance)
        )


def measure_of(rows: Sequence[StoredRow], metric: str | None, view: str | None) -> Measure:
    """The measure to compare rows by; by default recall_any at the largest k, over all queries.

    Raises:
        UsageError: if the rows do not have the metric or the view (`bad_option`).
    """
    ks = rows[0].report.settings.ks
    known = [f"{name}@{k}" for name in RATES for k in ks]
    chosen = metric or f"{RATES[0]}@{max(ks)}"
    if chosen not in known:
        raise UsageError(
            f"cannot compare by --metric {chosen}",
            code="bad_option",
            hint=nearest(chosen, known) or f"give one of {', '.join(known)}",
        )
    views = list(dict.fromkeys(name for stored in rows for name in stored.row.views))
    for stored in rows:
        if stored.row.measured and view is not None and view not in stored.row.views:
            raise UsageError(
                f"{stored.name!r} has no view {view!r}",
                code="bad_option",
                hint=nearest(view, views) or f"the views are {', '.join(views)}",
            )
    return Measure(chosen, view or ALL)


_TREATMENTS = ("index", "pruned_sha256")


@dataclass(slots=True)
class _Tally:
    """Two rows, query by query."""

    first: StoredRow
    second: StoredRow
    measure: Measure
    passed: tuple[frozenset[str], frozenset[str]]
    counts: Counts = field(default_factory=Counts)
    equal: int = 0
    overlaps: list[float] = field(default_factory=list)
    rbos: list[float] = field(default_factory=list)
    earlier: int = 0
    later: int = 0
    regressions: list[QueryDifference] = field(default_factory=list)
    fixes: list[QueryDifference] = field(default_factory=list)
    not_measured: list[str] = field(default_factory=list)
    log_ratios: list[float] = field(default_factory=list)

    def compare(self) -> None:
        """Compare every query that at least one of the rows recorded."""
        first, second = self.first, self.second
        for query in dict.fromkeys((*first.records, *second.records)):
            one, other = first.measured(query), second.measured(query)
            if one is None or other is None:
                self.not_measured.append(query)
            else:
                self._add(one, other)
        # A query that neither row reached has no record.
        self.counts.same = self.equal == first.row.queries == second.row.queries

    def _add(self, one: QueryRecord, other: QueryRecord) -> None:
        self.equal += one.ranking == other.ranking
        if one.latency_ms and other.latency_ms:
            self.log_ratios.append(log(other.latency_ms / one.latency_ms))
        mine, yours = one.views.get(self.measure.view), other.views.get(self.measure.view)
        if (mine and sorted(mine.gold)) != (yours and sorted(yours.gold)):
            raise UsageError(
                f"{self.first.address} and {self.second.address} have different gold for query"
                f" {one.query!r} in view {self.measure.view!r}{self._errata()}",
                code="unlike_runs",
                hint="compare rows with the same gold; another --view may have it",
            )
        if mine is None or yours is None:
            return
        first, second = (one.query in passed for passed in self.passed)
        self.counts.add(first=first, second=second, cluster=one.cluster_name)
        gold = mine.gold
        rankings = scored_ranking(one, mine), scored_ranking(other, yours)
        self.overlaps.append(overlap_at(*rankings, self.measure.k))
        self.rbos.append(rbo(*rankings))
        ranks = [first_gold_rank(ranking, gold) for ranking in rankings]
        before, after = (float("inf") if rank is None else rank for rank in ranks)
        self.earlier += after < before
        self.later += after > before
        if first != second:
            (self.regressions if first else self.fixes).append(
                QueryDifference(
                    query=one.query,
                    haystack=one.haystack,
                    category=one.category,
                    gold=gold,
                    first_rank=ranks[0],
                    second_rank=ranks[1],
                )
            )

    def _errata(self) -> str:
        """Name the errata of the two rows, if they differ."""
        errata = [stored.report.errata for stored in (self.first, self.second)]
        if (
            self.first.report.settings.disputed_sha256
            == self.second.report.settings.disputed_sha256
        ):
            return ""
        names = ["none" if each is None else each.name for each in errata]
        versions = " of another version" if names[0] == names[1] else ""
        return f": errata {names[0]} and {names[1]}{versions}"

    def pair(self, contrast: PairedComparison) -> RowPair:
        return RowPair(
            first=self.first.name,
            second=self.second.name,
            contrast=contrast.model_copy(update=self.first.report.source.size()),
            not_measured_first=self.first.row.not_measured,
            not_measured_second=self.second.row.not_measured,
            rankings=ItemRankings(
                compared=len(self.rbos),
                equal=self.equal,
                overlap=fmean(self.overlaps) if self.overlaps else None,
                rbo=fmean(self.rbos) if self.rbos else None,
                gold_earlier=self.earlier,
                gold_later=self.later,
            ),
        )


def compare_rows(
    rows: Sequence[StoredRow],
    measure: Measure,
    *,
    margin: float = MARGIN,
    alpha: float = ALPHA,
) -> BenchParityReport:
    """Compare every pair of rows.

    Raises:
        UsageError: if there are fewer than two rows (`one_run`), or they cannot be compared
            (`unlike_runs`).
    """
    if len(rows) < 2:
        raise UsageError(
            "cannot compare a single row", code="one_run", hint="give two rows or results, or more"
        )
    require_comparable(rows)
    tallies = _tallies(list(combinations(rows, 2)), measure)
    comparisons = compare_pairs([tally.counts for tally in tallies], margin=margin, alpha=alpha)
    pairs = [tally.pair(contrast) for tally, contrast in zip(tallies, comparisons, strict=True)]
    codes = _codes(rows, pairs)
    codes += [ExitCode.FAILED for p in pairs if p.contrast.verdict is ParityVerdict.DRIFT]
    return BenchParityReport(
        verdict=max((p.contrast.verdict for p in pairs), key=list(ParityVerdict).index),
        exit_code=gravest(codes),
        reasons=_reasons(rows),
        suite=rows[0].report.suite,
        queries=rows[0].row.queries,
        view=measure.view,
        metric=measure.metric,
        margin=margin,
        alpha=alpha,
        rows=[_compared(stored, measure) for stored in rows],
        pairs=pairs,
    )


def diff_rows(
    pairs: Sequence[tuple[StoredRow, StoredRow]],
    measure: Measure,
    *,
    unpaired: Sequence[StoredRow] = (),
    seed: int = 0,
) -> BenchDiffReport:
    """Report what changed from the first row of each pair to the second.

    `unpaired` are the rows of one result that the other does not have; they are named.

    Raises:
        UsageError: if rows cannot be compared (`unlike_runs`).
    """
    rows = list({stored.key: stored for pair in pairs for stored in pair}.values())
    require_comparable(rows)
    tallies = _tallies(pairs, measure)
    comparisons = compare_pairs([tally.counts for tally in tallies])
    diffs = [
        RowDiff(
            **dict(tally.pair(contrast)),
            regressions=tally.regressions,
            fixes=tally.fixes,
            not_measured=tally.not_measured,
            latency=latency_ratio(tally.log_ratios, seed)
            if _is_timed_alike(*pair) and len(tally.log_ratios) >= LEAST_CLUSTERS
            else None,
        )
        for pair, tally, contrast in zip(pairs, tallies, comparisons, strict=True)
    ]
    return BenchDiffReport(
        exit_code=gravest(_codes(rows, diffs)),
        reasons=[
            *(f"{stored.address} has no counterpart: not compared" for stored in unpaired),
            *_reasons(rows),
            *(
                f"{one.name}, {other.name}: no latency is compared: each must be measured in one"
                " go, and with as many queries in flight"
                for one, other in pairs
                if not _is_timed_alike(one, other)
            ),
        ],
        view=measure.view,
        metric=measure.metric,
        rows=[_compared(stored, measure) for stored in rows],
        pairs=diffs,
        unpaired=[stored.address for stored in unpaired],
    )


def paired_rows(
    first: Sequence[StoredRow], second: Sequence[StoredRow]
) -> list[tuple[StoredRow, StoredRow]]:
    """Pair the rows of two results: the only row of each, or those of equal system and strategy.

    Raises:
        UsageError: if no system and strategy is in both (`unlike_runs`).
    """
    if len(first) == len(second) == 1:
        return [(first[0], second[0])]
    others: Mapping[tuple[str, ...], StoredRow] = {stored.key[1:]: stored for stored in second}
    pairs = [(one, others[one.key[1:]]) for one in first if one.key[1:] in others]
    if not pairs:
        raise UsageError(
            "the results have no system and strategy in common",
            code="unlike_runs",
            hint=f"name a row of each: {first[0].address} {second[0].address}",
        )
    return pairs


def _tallies(pairs: Sequence[tuple[StoredRow, StoredRow]], measure: Measure) -> list[_Tally]:
    # Once a row, because a row is in many pairs.
    rows = {stored.key: stored for pair in pairs for stored in pair}
    passed = {key: measure.passed(stored) for key, stored in rows.items()}
    tallies = [_Tally(a, b, measure, (passed[a.key], passed[b.key])) for a, b in pairs]
    for tally in tallies:
        tally.compare()
    return tallies


def _is_timed_alike(one: StoredRow, other: StoredRow) -> bool:
    """Whether the latencies of two rows can be compared.

    Latencies of concurrent queries contain each other, and parts of a resumed bench may have had
    other numbers in flight, on another day.
    """
    reports = (one.report, other.report)
    resumed = any(report.resumed_from is not None for report in reports)
    return not resumed and one.report.concurrency == other.report.concurrency


def _codes(rows: Sequence[StoredRow], pairs: Sequence[RowPair]) -> list[ExitCode]:
    codes = [ExitCode.DAEMON for stored in rows if _incident(stored) is not None]
    codes += [ExitCode.NOTHING_SELECTED for pair in pairs if pair.contrast.compared == 0]
    return codes


def _incident(stored: StoredRow) -> Incident | None:
    return next((s.incident for s in stored.report.systems if s.name == stored.row.system), None)


def _reasons(rows: Sequence[StoredRow]) -> list[str]:
    reasons = []
    for stored in rows:
        if stored.row.not_measured:
            why = f": {stored.row.why[0]}" if stored.row.why else ""
            reasons.append(
                f"{stored.name}: {stored.row.not_measured} of {stored.row.queries} queries not"
                f" measured{why}; its comparisons use the others"
            )
    for name in _TREATMENTS:
        values = list(dict.fromkeys(getattr(stored.report.settings, name) for stored in rows))
        if len(values) > 1 and name == "index":
            reasons.append(f"the rows differ in index: {', '.join(values)}")
        elif len(values) > 1:
            reasons.append("the rows differ in what is pruned")
    return reasons


def _compared(stored: StoredRow, measure: Measure) -> ComparedRow:
    report, row = stored.report, stored.row
    system = next(each for each in report.systems if each.name == row.system)
    view = row.views.get(measure.view)
    return ComparedRow(
        name=stored.name,
        address=stored.address,
        started_at=f"{report.started_at:%Y-%m-%dT%H:%M}",
        version=system.version,
        build_hash=system.build_hash,
        index=report.settings.index,
        queries=row.queries,
        not_measured=row.not_measured,
        rate=view.metrics[measure.metric] if view is not None else None,
    )
