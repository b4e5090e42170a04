"""Bench reports: tables on the terminal and in Markdown."""

from collections.abc import Iterable, Sequence

from memconform.bench.events import (
    BenchEvent,
    BenchFinished,
    HaystackIndexed,
    ModeHalted,
    QueryFinished,
    SystemHalted,
    SystemStarted,
)
from memconform.bench.plan import BenchPlan
from memconform.bench.records import BenchReport, Row, Scores, SystemReport
from memconform.bench.tasks import OFFICIAL, OFFICIAL_SESSIONS
from memconform.daemons.availability import SkippedSdk
from memconform.datasets.haystacks import DroppedEntry
from memconform.printing.errors import render_error
from memconform.printing.escaping import Lines, escape_markdown
from memconform.printing.plurals import plural
from memconform.reports.bench_notes import footnotes, row_name, system_tables
from memconform.reports.console import table_console
from memconform.reports.fitted_table import fitting_table, omission
from memconform.reports.markdown import markdown_table
from memconform.reports.parity import contrast_line
from memconform.reports.progress import RowsProgress
from memconform.reports.rates import NO_FIGURE, format_rate
from memconform.scoring.accuracy import Estimate
from memconform.scoring.retrieval import RATES
from memconform.stats.paired_comparison import ParityVerdict
from memconform.stats.quantiles import QuantileSummary

_SHOWN = ("recall_any", "recall_all", "mrr", "ndcg")
_OFFICIAL_SHOWN = ("recall_any", "recall_all", "ndcg_any")
_BY_WEIGHT = ("recall_any", "mrr", "ndcg", "ndcg_any", "recall_all")
_LESS_IMPORTANT = (
    *("p50 ms", "p95 ms", "own p50", "reranker adds", "p99 ms"),
    *("ingest s", "documents", "memory MiB", "disk MiB", "chunks", "vectors", "documents/s"),
)
"""Columns besides scores, most important first: a table that is too wide omits the last."""


class BenchConsole(RowsProgress):
    """Event handler that shows the progress of a bench, with a row per system."""

    def __init__(self, plan: BenchPlan, *, quiet: bool = False) -> None:
        super().__init__([system.name for system in plan.systems], quiet=quiet)
        self._system: str | None = None
        self._ingested = 0
        self.has_halted = False
        """Whether a system ended early."""

    def handle(self, event: BenchEvent) -> None:
        """Update the rows, and print an error that halts a system."""
        match event:
            case SystemStarted():
                self._end("done")
                self._system, self._ingested = event.system, 0
                self.begin(event.system, "starting", event.pending)
            case HaystackIndexed():
                self._ingested += event.record.documents
                self.tell(event.record.system, plural(self._ingested, "item", spec=","))
            case QueryFinished():
                self.advance(event.record.system)
            case BenchFinished():
                self._end("done")
            case SystemHalted():
                self._end("failed")
                self.has_halted = True
                self._console.print(
                    Lines(f"{event.system}: {render_error(event.error)}"), style="red"
                )
            case ModeHalted():
                name = f"{event.system} {event.mode.value}"
                self._console.print(Lines(f"{name}: {render_error(event.error)}"), style="red")

    def _end(self, state: str) -> None:
        """End the row of the current system, unless it has ended."""
        if self._system is not None:
            self.end(self._system, state)
        self._system = None


def show_bench(
    report: BenchReport,
    skipped: Sequence[SkippedSdk],
    *,
    dropped: Sequence[DroppedEntry],
    verbose: bool,
    quiet: bool,
) -> None:
    """Print the tables to standard error; `quiet` prints only what was not measured or differs."""
    console = table_console(stderr=True)
    if not quiet:
        console.print(_title(report), style="bold")
        omitted: list[str] = []
        headed = [
            part
            for name in report.view_names()
            for part in _tables(report, name, by_category=verbose)
        ]
        for heading, header, cells in [*headed, *(("", *cost) for cost in _costs(report))]:
            if heading:
                console.print(heading, style="bold")
            table, missing = fitting_table(
                header,
                cells,
                console.width,
                names=_named(header),
                importance=_importance(header),
            )
            console.print(table)
            omitted += missing
        for line in [omission(omitted, "--markdown and --json have them"), *footnotes(report)]:
            if line:
                console.print(line, style="dim")
    for row in report.rows:
        if not row.measured:
            console.print(_unmeasured(row), style="bold red")
            for reason in row.why:
                console.print(f"    {reason}", style="red")
    for line, good in _agreement_lines(report):
        console.print(line, style="green" if good else "red")
    for sdk in skipped:
        console.print(Lines(f"{sdk.sdk} skipped: {render_error(sdk.error)}"), style="yellow")
    for entry in dropped:
        console.print(f"dropped or unresolved {entry.id}: {entry.why}", style="dim")


def bench_markdown(report: BenchReport, *, by_category: bool = True) -> str:
    """Render all tables, by default with scores by category, as Markdown."""
    lines = [f"## {escape_markdown(_title(report))}"]
    for name in report.view_names():
        for heading, header, cells in _tables(report, name, by_category=by_category):
            lines += ["", f"### {escape_markdown(heading)}", "", *_markdown(header, cells)]
    for header, cells in _costs(report):
        lines += ["", *_markdown(header, cells)]
    notes = footnotes(report)
    notes += [
        f"{_unmeasured(row)}: {'; '.join(row.why)}" for row in report.rows if not row.measured
    ]
    notes += [line for line, _ in _agreement_lines(report)]
    return "\n".join([*lines, "", *(f"- {escape_markdown(note)}" for note in notes)]) + "\n"


def _shown(view: str) -> tuple[str, ...]:
    """The metrics of a view's table; all are in the JSON report."""
    return _OFFICIAL_SHOWN if view in (OFFICIAL, OFFICIAL_SESSIONS) else _SHOWN


_Cells = list[list[str]]


def _importance(header: Sequence[str]) -> list[str]:
    """The columns of a table from most to least important: recall_any first, then largest k."""
    parts = (name.partition("@") for name in header)
    metrics = [each for each in parts if each[0] in _BY_WEIGHT]
    largest = max((int(k) for _, _, k in metrics), default=0)
    ranked = sorted(
        metrics, key=lambda m: (m[0] != _SHOWN[0], int(m[2]) != largest, _BY_WEIGHT.index(m[0]))
    )
    return [*("".join(metric) for metric in ranked), *_LESS_IMPORTANT]


def _title(report: BenchReport) -> str:
    source = report.source
    options = "".join(f", {name} {value}" for name, value in source.options.items())
    suite = report.suite if report.suite == source.format else f"{report.suite} ({source.format})"
    return (
        f"{suite}{options}: {plural(source.queries, 'query', spec=',')} over"
        f" {plural(source.items, 'item', spec=',')} in"
        f" {plural(source.haystacks, 'haystack', spec=',')}, {report.settings.index} index"
        + "".join(f"; {transformation}" for transformation in source.made)
        + (f"; {report.settings.shard.label()}" if report.settings.shard else "")
    )


def _tables(
    report: BenchReport, view: str, *, by_category: bool
) -> list[tuple[str, list[str], _Cells]]:
    rows = [(row.system, row.strategy, row.views[view]) for row in report.rows if row.views]
    header, cells = _score_cells(rows, _shown(view))
    queries = plural(rows[0][2].queries, "query", spec=",")
    tables = [(f"{view}: {queries} with gold", header, cells)]
    if by_category:
        for category in rows[0][2].by_category:
            of_category = [
                (system, label, scores.by_category[category]) for system, label, scores in rows
            ]
            header, cells = _score_cells(of_category, _shown(view))
            queries = plural(of_category[0][2].queries, "query", spec=",")
            tables.append((f"{view}, {category}: {queries}", header, cells))
    return tables


def _score_cells(
    rows: Iterable[tuple[str, str, Scores]], shown: Sequence[str]
) -> tuple[list[str], _Cells]:
    systems = list(rows)
    names = [name for name in systems[0][2].metrics if name.partition("@")[0] in shown]
    cells = [
        [
            system,
            label or NO_FIGURE,
            *(_cell(name, scores.metrics[name], scores.queries) for name in names),
        ]
        for system, label, scores in systems
    ]
    return ["system", "strategy", *names], cells


def _cell(name: str, estimate: Estimate, queries: int) -> str:
    interval = (estimate.low, estimate.high) if name.partition("@")[0] in RATES[:1] else None
    return format_rate(estimate.value, interval, measured=queries, spec=".1f")


def _costs(report: BenchReport) -> list[tuple[list[str], _Cells]]:
    """Return the tables of latencies, of latency tiers if the suite has them, and of ingest."""
    speeds = [(row, row.latency) for row in report.rows if row.latency is not None]
    tables = []
    if speeds:
        header = ["system", "strategy", "p50 ms", "p95 ms", "p99 ms", "own p50", "reranker adds"]
        cells = [
            [
                *_names(row),
                *(f"{value:.1f}" for value in (answer.p50, answer.p95, answer.p99)),
                _p50(speed.search),
                _p50(row.rerank_adds_ms),
            ]
            for row, speed in speeds
            for answer in [speed.answer]
        ]
        tables.append((header, cells))
    if speeds and report.source.format == "wmb":
        header = ["system", "strategy", *speeds[0][1].tiers]
        tiers = [[*_names(row), *map("{:.1%}".format, s.tiers.values())] for row, s in speeds]
        tables.append((header, tiers))
    header = ["system", "documents", "chunks", "vectors", "ingest s", "documents/s"]
    header += ["memory MiB", "disk MiB"]
    tables.append((header, [_ingest_cells(system) for system in report.systems]))
    return [*tables, *system_tables(report)]


def _names(row: Row) -> list[str]:
    return [row.system, row.strategy or NO_FIGURE]


def _p50(values: QuantileSummary | None) -> str:
    return NO_FIGURE if values is None else f"{values.p50:.1f}"


def _ingest_cells(system: SystemReport) -> list[str]:
    return [
        system.name,
        f"{system.documents:,}",
        _count(system.chunks),
        _count(system.vectors),
        NO_FIGURE if system.ingest_s is None else f"{system.ingest_s:.1f}",
        NO_FIGURE if system.documents_per_s is None else f"{system.documents_per_s:,.0f}",
        _mebibytes(system.rss_peak_bytes),
        _mebibytes(system.disk_bytes),
    ]


def _count(value: int | None) -> str:
    return NO_FIGURE if value is None else f"{value:,}"


def _mebibytes(value: int | None) -> str:
    return NO_FIGURE if value is None else f"{value / 2**20:,.0f}"


def _unmeasured(row: Row) -> str:
    name = row_name(row)
    queries = plural(row.queries, "query", spec=",")
    return f"{name}: not measured, {row.not_measured:,} of {queries} missing"


def _agreement_lines(report: BenchReport) -> list[tuple[str, bool]]:
    """Lines about the agreement of systems, each with whether it is good news."""
    lines = []
    for agreement in report.alike:
        good = agreement.equal == agreement.compared == report.source.queries
        queries = plural(agreement.compared, "query", spec=",")
        systems = ", ".join(agreement.systems)
        line = f"{agreement.strategy}: {systems} rank {agreement.equal:,} of {queries} alike"
        lines.append((line, good))
        lines += [(f"    {difference}", False) for difference in agreement.differs]
    for pair in report.parity:
        verdict = contrast_line(pair.first, pair.second, pair.contrast, "haystack")
        good = pair.contrast.verdict in (ParityVerdict.IDENTICAL, ParityVerdict.PARITY)
        lines.append((f"{pair.strategy}, {pair.metric}: {verdict}", good))
    return lines


def _named(header: Sequence[str]) -> int:
    """The number of columns that identify a row."""
    return 2 if "strategy" in header else 1


def _markdown(header: Sequence[str], cells: _Cells) -> list[str]:
    return markdown_table(header, cells, left=range(_named(header)))
