"""What a bench says in words: the lines below its tables, and its primary figure."""

from collections.abc import Iterator

from memconform.bench.behaviour import SystemBehaviour
from memconform.bench.records import AboveCeiling, BenchReport, Row
from memconform.bench.tasks import ALL, UNDISPUTED
from memconform.client.timings import short_latencies
from memconform.ingest.records import nothing_found
from memconform.printing.plurals import plural
from memconform.reports.console import null_lists, short_rankings, skipped
from memconform.reports.rates import format_rate
from memconform.scoring.retrieval import RATES
from memconform.stats.paired_comparison import ParityVerdict

_HIGH_CHANCE = 50.0
"""Percent from which a note says what a random ranking scores."""


def footnotes(report: BenchReport) -> list[str]:
    """Return the lines for a whole report."""
    source = report.source
    lines = []
    if source.sha256 and source.format in ("locomo", "longmemeval"):
        lines.append(f"dataset file: {source.pinned or 'not one of the pinned versions'}")
    if source.with_gold < source.queries:
        without_gold = plural(source.queries - source.with_gold, "query", spec=",")
        lines.append(f"{without_gold} without gold, counted for speed only")
    if source.dropped:
        lines.append(f"{source.dropped} dropped or unresolved: --verbose lists them")
    if source.silent:
        lines.append(f"{plural(source.silent, 'item')} without text, which no system can retrieve")
    lines += [
        f"{system.name} indexes the items as LongMemEval's released code does: user turns alone,"
        " and sessions that are listed twice count twice"
        for system in report.systems
        if system.official_items
    ]
    lines += _chance_notes(report)
    lines += _rank_notes(report)
    lines += _errata_notes(report)
    lines += _latency_notes(report)
    lines += [
        f"{system.name}: finds {seen.found:,} of {plural(seen.probed, 'item', spec=',')} by their"
        " own words"
        for system in report.systems
        if (seen := system.behaviour) is not None and 2 * seen.found < seen.probed
    ]
    foreign = {system.name for system in report.systems if system.behaviour is not None}
    for row in report.rows:
        lines += _row_notes(row, is_foreign=row.system in foreign)
    if report.concurrency > 1:
        lines.append(f"latencies were measured with {report.concurrency} queries in flight")
    if report.resumed_from is not None:
        lines.append(
            "no speed, memory or disk is shown, because part of each was measured in"
            f" {report.resumed_from}"
        )
    if report.overhead_ms is not None:
        lines.append(
            f"daemon latencies include {report.overhead_ms.p50:.1f} ms of the harness itself (p50"
            " of sequential searches against a server that answers at once)"
        )
    return lines


BenchTable = tuple[list[str], list[list[str]]]
"""A header and rows."""


def system_tables(report: BenchReport) -> list[BenchTable]:
    """The tables about systems behind adapters; empty without any."""
    return [table for table in (behaviour_table(report), bm25_table(report)) if table is not None]


def behaviour_table(report: BenchReport) -> BenchTable | None:
    """What systems behind adapters were seen to do; None without any."""
    header = ["system", "found by own words", "of no item", "rewritten", "too few", "changed"]
    header += ["other user's", "lost by a restart", "model calls", "adapter lines", "licence"]
    cells = [
        [
            system.name,
            *(
                f"{part:,}/{whole:,}"
                for part, whole in (
                    *((seen.found, seen.probed), (seen.of_no_item, seen.hits)),
                    (seen.rewritten, seen.hits),
                    *((seen.short, seen.searches), (seen.changed, seen.repeated)),
                    *((seen.leaks, seen.probed + seen.searches), (seen.lost, seen.restarted)),
                )
            ),
            _model_calls(seen),
            str(seen.adapter_lines),
            seen.licence,
        ]
        for system in report.systems
        if (seen := system.behaviour) is not None
    ]
    return (header, cells) if cells else None


def _model_calls(seen: SystemBehaviour) -> str:
    if seen.model_calls is None:
        return "-"
    shown = f"{seen.model_calls:,}"
    return f"{shown}, {seen.stand_ins:,} by a stand-in" if seen.stand_ins else shown


def bm25_table(report: BenchReport) -> BenchTable | None:
    """Which systems find more than BM25 does; None if that was not measured beside them."""
    if not report.with_bm25:
        return None
    first = report.with_bm25[0]
    bm25 = _name(first.second, first.second_strategy)
    header = ["system", f"beside {bm25}", f"points of {first.metric} (95 %)", "p (Holm)"]
    cells = []
    for pair in report.with_bm25:
        contrast, difference = pair.contrast, pair.contrast.difference
        verdict: str = contrast.verdict.value
        if contrast.verdict is ParityVerdict.DRIFT:
            verdict = "better" if difference.value > 0 else "worse"
        interval = f"{100 * difference.low:+.1f} to {100 * difference.high:+.1f}"
        points = f"{100 * difference.value:+.1f} ({interval})"
        figures = [points, f"{contrast.holm_p:.3f}"] if contrast.compared else ["-", "-"]
        cells.append([_name(pair.first, pair.strategy), verdict, *figures])
    return header, cells


def _row_notes(row: Row, *, is_foreign: bool) -> Iterator[str]:
    """Lines about what a row is measured in spite of; a foreign system knows no contract."""
    name = row_name(row)
    if row.rising_scores:
        rankings = plural(row.rising_scores, "ranking")
        own = ": it ranks by something else, or lower is better"
        rule = own if is_foreign else " (core.search.order)"
        yield f"{name}: scores rise in {rankings}{rule}, ranked by position"
    if row.short_rankings:
        yield f"{name}: {short_rankings(row.short_rankings)}"
    if row.skipped_stages:
        yield f"{name}: stages {skipped(row.skipped_stages, row.queries)}"
    if row.null_lists:
        yield f"{name}: {null_lists(row.null_lists)}"
    if row.empty_rankings and row.empty_rankings == row.queries:
        yield f"{name}: {nothing_found(row.queries)}"
    if row.unanswered:
        queries = f"{row.unanswered} of {plural(row.queries, 'query')}"
        yield f"{name}: its own reader did not answer {queries}; --resume asks again"


def _chance_notes(report: BenchReport) -> list[str]:
    """Name the views in which a random ranking finds much."""
    lines = []
    for view, chance in report.chance.items():
        high = {
            name: value
            for name, value in chance.metrics.items()
            if value >= _HIGH_CHANCE and name.startswith(RATES[0])
        }
        if chance.every_item_relevant:
            lines.append(f"{view}: every item is relevant; any ranking of them scores 100")
        elif high:
            scores = ", ".join(f"{name} {value:.1f}" for name, value in high.items())
            lines.append(f"{view}: a random ranking scores {scores}")
    return lines


def _rank_notes(report: BenchReport) -> list[str]:
    """Say how each row orders equal scores, and what makes a score of two vectors."""
    ties: dict[str, dict[str, None]] = {}
    kernels: dict[str, dict[str, None]] = {}
    for row in report.rows:
        if row.ties:
            ties.setdefault(row.ties, {})[row.system] = None
        if row.kernel:
            kernels.setdefault(row.kernel, {})[row_name(row)] = None
    lines = [f"equal scores {how}: {', '.join(names)}" for how, names in ties.items()]
    lines += [f"similarity {kernel}: {', '.join(names)}" for kernel, names in kernels.items()]
    return lines


def _latency_notes(report: BenchReport) -> list[str]:
    return [
        f"{row_name(row)}: {short_latencies(row.short_latencies)}"
        for row in report.rows
        if row.short_latencies
    ]


def row_name(row: Row) -> str:
    """The name of a row in a line."""
    return _name(row.system, row.strategy)


def _name(system: str, strategy: str | None) -> str:
    return f"{system} {strategy or ''}".strip()


def _errata_notes(report: BenchReport) -> list[str]:
    """What the errata change, and the rows that owe part of their raw score to wrong gold."""
    errata = report.errata
    if errata is None:
        return []
    disputed = plural(errata.disputed, "disputed query", spec=",")
    effect = f"{UNDISPUTED} omits {disputed} and corrects the gold of {errata.corrected:,}"
    lines = [f"errata {errata.name}: {effect}; {ALL} is raw"]
    for row in report.rows:
        worst: dict[str, AboveCeiling] = {}
        for above in row.above_ceilings:
            other = worst.get(above.scope)
            if other is None or above.score - above.ceiling > other.score - other.ceiling:
                worst[above.scope] = above
        excesses = [
            f"{scope} {above.metric} {above.score:.1f} > {above.ceiling:.1f}{_corrections(above)}"
            for scope, above in worst.items()
        ]
        if excesses:
            lines.append(f"{row_name(row)}: above the ceiling of wrong gold: {'; '.join(excesses)}")
    return lines


def _corrections(above: AboveCeiling) -> str:
    if above.corrected is None:
        return ""
    return f" by {plural(above.corrected, 'corrected query')}"


def primary_figure(report: BenchReport) -> str:
    """The rate that rows are compared by: of one row with its interval, of several the range."""
    metric = f"{RATES[0]}@{max(report.settings.ks)}"
    rates = [
        (rate, row_name(row))
        for row in report.rows
        if ALL in row.views and (rate := row.views[ALL].metrics.get(metric)) is not None
    ]
    if not rates:
        return ""
    (low, worst), (high, best) = (
        choose(rates, key=lambda each: each[0].value) for choose in (min, max)
    )
    if low.value == high.value and len(rates) > 1:
        return f"{metric} {low.value:.1f} % in {plural(len(rates), 'row')}"
    if len(rates) == 1:
        text = format_rate(low.value, (low.low, low.high), measured=1, spec=".1f", unit=" %")
        return f"{metric} {text}, {worst}"
    return f"{metric} {low.value:.1f} % ({worst}) to {high.value:.1f} % ({best})"
