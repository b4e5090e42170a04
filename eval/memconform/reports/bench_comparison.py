"""Reports of compared bench results: pairs of rows, changed queries, and trends."""

from collections.abc import Iterator, Sequence

from memconform.bench.comparison_records import (
    BenchDiffReport,
    BenchParityReport,
    ComparedRow,
    QueryDifference,
    RowDiff,
    RowPair,
)
from memconform.bench.records import BenchReport, Row
from memconform.bench.tasks import ALL
from memconform.printing.console import SafeConsole
from memconform.printing.escaping import escape_markdown
from memconform.printing.plurals import plural
from memconform.reports.console import table_console
from memconform.reports.fitted_table import fitting_table, omission
from memconform.reports.markdown import markdown_table
from memconform.reports.parity import contrast_line
from memconform.reports.rates import NO_FIGURE, NOT_MEASURED, format_rate
from memconform.stats.paired_comparison import ParityVerdict

_GOOD = (ParityVerdict.IDENTICAL, ParityVerdict.PARITY)
_SHOWN = 10
"""Queries of each list on the terminal; JSON has all."""
_COMPARED_HEADER = ("row", "index", "started", "version", "build", "queries", "not measured")
_PAIR_HEADER = (
    *("pair", "verdict", "only", "difference (95 %)", "p (Holm)", "rankings", "overlap", "RBO"),
    "gold earlier / later",
)


def bench_parity_banner(report: BenchParityReport) -> str:
    """Format `<row>, <row>: <verdict> by <metric> on <queries>`."""
    compared = min(pair.contrast.compared for pair in report.pairs)
    return (
        f"{', '.join(row.name for row in report.rows)}: {report.verdict.value} by {report.metric}"
        f" on {plural(compared, 'query', spec=',')} of {report.suite}"
    )


def show_bench_parity(report: BenchParityReport) -> None:
    """Print the rows, and the verdict on each pair, to standard error."""
    console = table_console(stderr=True)
    omitted = _show_rows(console, report.rows, report.metric)
    table, missing = fitting_table(
        _PAIR_HEADER, [_pair_cells(pair) for pair in report.pairs], console.width
    )
    console.print(table)
    for pair in report.pairs:
        good = pair.contrast.verdict in _GOOD
        line = contrast_line(pair.first, pair.second, pair.contrast)
        console.print(line, style="green" if good else "red")
    _show_notes(
        console,
        [*report.reasons, omission([*omitted, *missing], "--markdown and --json have them")],
    )


def bench_parity_markdown(report: BenchParityReport) -> str:
    """Render the rows and the pairs as Markdown."""
    header, cells = _row_cells(report.rows, report.metric)
    lines = [f"## {escape_markdown(bench_parity_banner(report))}", ""]
    lines += [*markdown_table(header, cells, left=range(len(header))), ""]
    pairs = [_pair_cells(pair) for pair in report.pairs]
    lines += [*markdown_table(_PAIR_HEADER, pairs, left=range(len(_PAIR_HEADER))), ""]
    notes = [contrast_line(pair.first, pair.second, pair.contrast) for pair in report.pairs]
    lines += [f"- {escape_markdown(note)}" for note in [*notes, *report.reasons]]
    return "\n".join(lines) + "\n"


def bench_diff_banner(report: BenchDiffReport) -> str:
    """Format `<n> queries only in the first, <n> only in the second, <n> not measured`."""
    regressions = sum(len(pair.regressions) for pair in report.pairs)
    fixes = sum(len(pair.fixes) for pair in report.pairs)
    missing = sum(len(pair.not_measured) for pair in report.pairs)
    counts = f"{plural(regressions, 'regression')}, {plural(fixes, 'fix')}"
    return f"{counts}, {missing} not measured, by {report.metric}"


def show_bench_difference(report: BenchDiffReport) -> None:
    """Print each pair's verdict and the queries that only one of its rows passes."""
    console = table_console(stderr=True)
    omitted = _show_rows(console, report.rows, report.metric)
    for pair in report.pairs:
        for indent, line, style in _pair_lines(pair, shown=_SHOWN):
            console.print(f"{'  ' * indent}{line}", style=style)
    _show_notes(console, [*report.reasons, omission(omitted, "--markdown and --json have them")])


def bench_diff_markdown(report: BenchDiffReport) -> str:
    """Render the rows, and of each pair the verdict and every query that changed, as Markdown."""
    header, cells = _row_cells(report.rows, report.metric)
    lines = [f"## {escape_markdown(bench_diff_banner(report))}", ""]
    lines += [*markdown_table(header, cells, left=range(len(header))), ""]
    for pair in report.pairs:
        for indent, line, _ in _pair_lines(pair, shown=None):
            lines.append(f"{'  ' * indent}- {escape_markdown(line)}")
    lines += [f"- {escape_markdown(reason)}" for reason in report.reasons]
    return "\n".join(lines) + "\n"


def _pair_lines(pair: RowDiff, *, shown: int | None) -> Iterator[tuple[int, str, str]]:
    """Lines with their indentation and style; of each list so many queries, or all."""
    yield 0, contrast_line(pair.first, pair.second, pair.contrast), ""
    for title, queries, style in (
        (f"only {pair.first}", pair.regressions, "red"),
        (f"only {pair.second}", pair.fixes, "green"),
    ):
        if queries:
            yield 1, f"{title}: {plural(len(queries), 'query', spec=',')}", style
        for query in queries[:shown]:
            yield 2, _query_line(query), ""
        if rest := len(queries) - len(queries[:shown]):
            yield 2, f"and {rest:,} more: --markdown and --json list them", ""
    if pair.not_measured:
        rest = len(pair.not_measured) - len(pair.not_measured[:shown])
        more = f", and {rest} more" if rest else ""
        yield 1, f"not measured: {', '.join(pair.not_measured[:shown])}{more}", "yellow"
    if pair.latency is not None:
        ratio, compared = pair.latency.ratio, pair.latency.questions
        text = format_rate(ratio.value, (ratio.low, ratio.high), measured=compared, spec=".2f")
        yield 1, f"latency of {pair.second} by that of {pair.first}: {text}", ""


def show_bench_trend(reports: Sequence[BenchReport], *, stderr: bool = False) -> None:
    """Print one line per row and day, by benchmark, row and start.

    A row that was not completely measured has no scores.
    """
    console = table_console(stderr=stderr)
    header, cells = _trend_rows(reports)
    names = [name for name in header if "@" in name]
    rates = sorted((name for name in names if name.startswith("recall_any@")), key=_k, reverse=True)
    importance = [*rates[:1], "not measured", *rates[1:], *names, "p50 ms", "version"]
    table, omitted = fitting_table(header, cells, console.width, importance=importance)
    console.print(table)
    _show_notes(console, [omission(omitted, "--markdown and --json have them")])


def bench_trend_markdown(reports: Sequence[BenchReport]) -> str:
    """Render one line per row and day as Markdown; empty without reports."""
    if not reports:
        return ""
    return "\n".join([*markdown_table(*_trend_rows(reports), left=(0, 1)), "", ""])


def _trend_rows(reports: Sequence[BenchReport]) -> tuple[list[str], list[list[str]]]:
    names = list(dict.fromkeys(name for each in reports for name in _trend_metrics(each)))
    header = ["what", "started", *names, "not measured", "p50 ms", "p95 ms", "version", "build"]
    cells = []
    earlier = ""
    for what, started, report, row in _trend_lines(reports):
        cells.append(["" if what == earlier else what, started, *_trend_cells(report, row, names)])
        earlier = what
    return header, cells


def in_trend_order(reports: Sequence[BenchReport]) -> list[BenchReport]:
    """Reports of one row each, in the order of their lines in the table."""
    return [report for _, _, report, _ in _trend_lines(reports)]


def _trend_lines(reports: Sequence[BenchReport]) -> list[tuple[str, str, BenchReport, Row]]:
    """What each row is, when it began, its report and the row, sorted by the first two."""
    selections: dict[str, set[str]] = {}
    for report in reports:
        selections.setdefault(_benchmark(report), set()).add(report.settings.asked())
    lines = (
        (
            _what(report, row, ambiguous=len(selections[_benchmark(report)]) > 1),
            f"{report.started_at:%Y-%m-%dT%H:%M}",
            report,
            row,
        )
        for report in reports
        for row in report.rows
    )
    return sorted(lines, key=lambda line: line[:2])


def _show_notes(console: SafeConsole, notes: Sequence[str]) -> None:
    for note in filter(None, notes):
        console.print(note, style="dim")


def _show_rows(console: SafeConsole, rows: Sequence[ComparedRow], metric: str) -> list[str]:
    header, cells = _row_cells(rows, metric)
    importance = (metric, "not measured", "index", "started", "queries", "version")
    table, omitted = fitting_table(header, cells, console.width, names=1, importance=importance)
    console.print(table)
    return omitted


def _row_cells(rows: Sequence[ComparedRow], metric: str) -> tuple[list[str], list[list[str]]]:
    cells = [
        [
            row.name,
            row.index,
            row.started_at,
            row.version or NO_FIGURE,
            (row.build_hash or NO_FIGURE)[:8],
            f"{row.queries:,}",
            f"{row.not_measured:,}",
            NOT_MEASURED
            if row.rate is None
            else format_rate(
                row.rate.value, (row.rate.low, row.rate.high), measured=row.queries, spec=".1f"
            ),
        ]
        for row in rows
    ]
    return [*_COMPARED_HEADER, metric], cells


def _pair_cells(pair: RowPair) -> list[str]:
    contrast, rankings = pair.contrast, pair.rankings
    difference = contrast.difference
    interval = (100 * difference.low, 100 * difference.high)
    return [
        f"{pair.first}, {pair.second}",
        contrast.verdict.value,
        f"{contrast.first_only} / {contrast.second_only}",
        format_rate(100 * difference.value, interval, measured=contrast.compared, spec="+.1f"),
        f"{contrast.holm_p:.2g}",
        f"{rankings.equal:,} equal",
        NO_FIGURE if rankings.overlap is None else f"{rankings.overlap:.3f}",
        NO_FIGURE if rankings.rbo is None else f"{rankings.rbo:.3f}",
        f"{rankings.gold_earlier} / {rankings.gold_later}",
    ]


def _query_line(query: QueryDifference) -> str:
    ranks = (query.first_rank, query.second_rank)
    first, second = (NO_FIGURE if rank is None else str(rank) for rank in ranks)
    category = f" ({query.category})" if query.category else ""
    return f"{query.query}{category}: gold {', '.join(query.gold)}, rank {first} -> {second}"


def _benchmark(report: BenchReport) -> str:
    source = report.source
    return " ".join([report.suite, *source.options.values(), *source.made, report.settings.index])


def _what(report: BenchReport, row: Row, *, ambiguous: bool) -> str:
    """Name a series; a digest tells those apart that have one name but other queries."""
    digest = f"#{report.settings.asked()[:6]}" if ambiguous else ""
    return " ".join(filter(None, [_benchmark(report), digest, row.system, row.strategy]))


def _k(metric: str) -> int:
    return int(metric.partition("@")[2])


def _trend_metrics(report: BenchReport) -> list[str]:
    ks = report.settings.ks
    return [*(f"recall_any@{k}" for k in ks), f"mrr@{max(ks)}", f"ndcg@{max(ks)}"]


def _trend_cells(report: BenchReport, row: Row, names: Sequence[str]) -> list[str]:
    view = row.views.get(ALL)
    values = {} if view is None else view.metrics
    scores = [f"{values[name].value:.1f}" if name in values else NO_FIGURE for name in names]
    system = next(each for each in report.systems if each.name == row.system)
    answer = row.latency.answer if row.latency else None
    speed = [NO_FIGURE] * 2 if answer is None else [f"{answer.p50:.1f}", f"{answer.p95:.1f}"]
    build = (system.build_hash or NO_FIGURE)[:8]
    return [*scores, f"{row.not_measured:,}", *speed, system.version or NO_FIGURE, build]
