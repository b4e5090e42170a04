"""A bench on the terminal, and its tables as Markdown."""

from collections.abc import Iterable, Sequence

from memconform.bench.events import (
    BenchEvent,
    HaystackIndexed,
    QueryFinished,
    SystemHalted,
    SystemStarted,
)
from memconform.bench.plan import BenchPlan
from memconform.bench.records import BenchReport, Estimate, Row, Scores, SystemReport
from memconform.bench.tasks import ALL
from memconform.daemons.availability import SkippedSdk
from memconform.datasets.haystacks import DroppedEntry
from memconform.parity.records import ParityVerdict
from memconform.printing.escaping import Lines, escape_markdown
from memconform.reports.console import ProgressReport, fitting_tables, standard_error
from memconform.reports.parity import contrast_line
from memconform.scoring.retrieval import RATES
from memconform.stats.quantiles import QuantileSummary

_MISSING = "-"
_SHOWN = ("recall_any", "recall_all", "mrr", "ndcg")
_WIDE = 160


class BenchConsole(ProgressReport):
    """Listens to the events of a bench."""

    def __init__(self, plan: BenchPlan, *, quiet: bool = False) -> None:
        super().__init__(quiet=quiet)
        self._plan = plan
        self._quiet = quiet
        self._task = self._progress.add_task("starting", total=None)
        self._filled = 0

    def handle(self, event: BenchEvent) -> None:
        match event:
            case SystemStarted():
                self._filled = 0
                self._progress.reset(self._task, total=event.pending, description=event.system)
            case HaystackIndexed():
                self._filled += event.record.documents
                described = f"{event.record.system}, {self._filled:,} items"
                self._progress.update(self._task, description=described)
            case QueryFinished():
                self._progress.advance(self._task)
            case SystemHalted():
                self._console.print(Lines(f"{event.system}: {event.error.render()}"), style="red")


def show_bench(
    report: BenchReport,
    absences: Sequence[SkippedSdk],
    *,
    dropped: Sequence[DroppedEntry],
    verbose: bool,
    quiet: bool,
) -> None:
    """The tables, to standard error; a quiet one still says what was not measured."""
    console = standard_error()
    if not console.is_terminal:
        # A file has no width; rich takes 80 columns for it, and cuts what does not fit.
        console.width = _WIDE
    if not quiet:
        console.print(_title(report), style="bold")
        for name in _views(report):
            for heading, header, cells in _tables(report, name, by_category=verbose):
                console.print(heading, style="bold")
                console.print(*fitting_tables(header, cells, console.width))
        for header, cells in _costs(report):
            console.print(*fitting_tables(header, cells, console.width))
        for line in _footnotes(report):
            console.print(line, style="dim")
    for row in report.rows:
        if not row.measured:
            console.print(_unmeasured(row), style="bold red")
            for why in row.why:
                console.print(f"    {why}", style="red")
    for line, good in _alike(report):
        console.print(line, style="green" if good else "red")
    for absence in absences:
        console.print(Lines(f"{absence.sdk} skipped: {absence.error.render()}"), style="yellow")
    for each in dropped:
        console.print(f"dropped or unresolved {each.id}: {each.why}", style="dim")


def bench_markdown(report: BenchReport) -> str:
    """All tables, with scores by category, as Markdown."""
    lines = [f"## {escape_markdown(_title(report))}"]
    for name in _views(report):
        for heading, header, cells in _tables(report, name, by_category=True):
            lines += ["", f"### {escape_markdown(heading)}", "", *_markdown(header, cells)]
    for header, cells in _costs(report):
        lines += ["", *_markdown(header, cells)]
    told = _footnotes(report)
    told += [f"{_unmeasured(row)}: {'; '.join(row.why)}" for row in report.rows if not row.measured]
    told += [line for line, _ in _alike(report)]
    return "\n".join([*lines, "", *(f"- {escape_markdown(line)}" for line in told)]) + "\n"


def score_table(rows: Iterable[Row], view: str = ALL) -> list[str]:
    """The scores of measured rows as a Markdown table, for a README."""
    return _markdown(*_scores_of((row.system, row.strategy, row.views[view]) for row in rows))


_Cells = list[list[str]]


def _title(report: BenchReport) -> str:
    source = report.source
    options = "".join(f", {name} {value}" for name, value in source.options.items())
    named = report.suite if report.suite == source.format else f"{report.suite} ({source.format})"
    return (
        f"{named}{options}: {source.queries:,} queries over {source.items:,} items in"
        f" {source.haystacks:,} haystacks, {report.settings.index} index"
        + "".join(f"; {words}" for words in source.made)
    )


def _views(report: BenchReport) -> list[str]:
    return list(dict.fromkeys(name for row in report.rows for name in row.views))


def _tables(
    report: BenchReport, view: str, *, by_category: bool
) -> list[tuple[str, list[str], _Cells]]:
    rows = [(row.system, row.strategy, row.views[view]) for row in report.rows if row.views]
    count = rows[0][2].queries
    header, cells = _scores_of(rows)
    tables = [(f"{view}: {count:,} queries with gold", header, cells)]
    if by_category:
        for category in rows[0][2].by_category:
            own = [(system, label, found.by_category[category]) for system, label, found in rows]
            header, cells = _scores_of(own)
            tables.append((f"{view}, {category}: {own[0][2].queries:,} queries", header, cells))
    return tables


def _scores_of(rows: Iterable[tuple[str, str, Scores]]) -> tuple[list[str], _Cells]:
    found = list(rows)
    names = [name for name in found[0][2].metrics if name.partition("@")[0] in _SHOWN]
    cells = [
        [system, label or _MISSING, *(_cell(name, scores.metrics[name]) for name in names)]
        for system, label, scores in found
    ]
    return ["system", "strategy", *names], cells


def _cell(name: str, estimate: Estimate) -> str:
    value = f"{estimate.value:.1f}"
    if name.partition("@")[0] in RATES[:1]:
        value += f" ({estimate.low:.1f} to {estimate.high:.1f})"
    return value


def _costs(report: BenchReport) -> list[tuple[list[str], _Cells]]:
    """The tables of latencies, of tiers where the suite has them, and of ingest."""
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
    header = ["system", "documents", "chunks", "vectors", "ingest s", "documents/s", "MiB", "disk"]
    return [*tables, (header, [_system(each) for each in report.systems])]


def _names(row: Row) -> list[str]:
    return [row.system, row.strategy or _MISSING]


def _p50(values: QuantileSummary | None) -> str:
    return _MISSING if values is None else f"{values.p50:.1f}"


def _system(each: SystemReport) -> list[str]:
    return [
        each.name,
        f"{each.documents:,}",
        f"{each.chunks:,}",
        f"{each.vectors:,}",
        f"{each.ingest_s:.1f}",
        _MISSING if each.documents_per_s is None else f"{each.documents_per_s:,.0f}",
        _mebibytes(each.rss_peak_bytes),
        _mebibytes(each.disk_bytes),
    ]


def _mebibytes(value: int | None) -> str:
    return _MISSING if value is None else f"{value / 2**20:,.0f}"


def _footnotes(report: BenchReport) -> list[str]:
    source = report.source
    lines = []
    if source.sha256 and source.format in ("locomo", "longmemeval"):
        lines.append(f"the file is {source.pinned or 'none of those that are pinned'}")
    if source.with_gold < source.queries:
        lines.append(
            f"{source.queries - source.with_gold:,} queries name no gold: only their speed counts"
        )
    if source.dropped:
        lines.append(f"{source.dropped} dropped or unresolved: --verbose lists them")
    if source.silent:
        lines.append(f"{source.silent} items have no text, and cannot be found")
    if report.concurrency > 1:
        lines.append(f"latencies are of {report.concurrency} queries in flight")
    if report.resumed_from is not None:
        lines.append(f"speed is not told: part of it was measured in {report.resumed_from}")
    if report.overhead_ms is not None:
        lines.append(
            f"a daemon's latency holds the harness's own: {report.overhead_ms.p50:.1f} ms (p50, one"
            " search after another) against a server that answers at once"
        )
    return lines


def _unmeasured(row: Row) -> str:
    name = f"{row.system} {row.strategy}".strip()
    return f"{name}: not measured, {row.not_measured:,} of {row.queries:,} queries are missing"


def _alike(report: BenchReport) -> list[tuple[str, bool]]:
    lines = []
    for each in report.alike:
        good = each.equal == each.compared == report.source.queries
        told = f"{each.strategy}: {', '.join(each.systems)} rank {each.equal:,} of"
        lines.append((f"{told} {each.compared:,} queries alike", good))
        lines += [(f"    {line}", False) for line in each.differs]
    for pair in report.parity:
        told = contrast_line(pair.first, pair.second, pair.contrast)
        good = pair.contrast.verdict in (ParityVerdict.IDENTICAL, ParityVerdict.PARITY)
        lines.append((f"{pair.strategy}, {pair.metric}: {told}", good))
    return lines


def _markdown(header: Sequence[str], cells: _Cells) -> list[str]:
    rule = ["---" if name in ("system", "strategy") else "---:" for name in header]
    rows = [[escape_markdown(cell) for cell in row] for row in cells]
    return [f"| {' | '.join(row)} |" for row in (header, rule, *rows)]
