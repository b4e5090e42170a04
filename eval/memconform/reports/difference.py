"""Reports of changes between two runs, and of trends over many."""

from collections.abc import Iterator, Sequence

from memconform.printing.console import standard_error
from memconform.printing.escaping import escape_markdown
from memconform.printing.plurals import plural
from memconform.reports.console import table_console
from memconform.reports.fitted_table import fitting_table, omission
from memconform.reports.markdown import markdown_table
from memconform.reports.parity import contrast_line
from memconform.reports.rates import (
    latency_text,
    measured_questions,
    missing_questions,
    pass_rate_text,
)
from memconform.results.run_diff import DiffReport
from memconform.runs.results import RunSummary

_LISTED = (
    ("regressions", "red"),
    ("fixes", "green"),
    ("not_measured", "yellow"),
    ("unstable", "yellow"),
    ("new", ""),
    ("removed", ""),
)
_NOUNS = {"regressions": "regression", "fixes": "fix"}
_LATENCIES = {
    "done": "latency",
    "first_event": "time to first event",
    "first_delta": "time to first delta",
}
_TREND_HEADER = (
    *("what", "started", "passed", "pass rate (95 %)", "not measured", "p50 ms", "p95 ms"),
    *("version", "build"),
)
_TREND_IMPORTANCE = ("pass rate (95 %)", "not measured", "passed", "p50 ms", "version", "build")
_SHOWN = 20


def diff_banner(report: DiffReport) -> str:
    """Format `<n> regressions, <n> fixes, <n> not measured, <n> unstable, <n> new, <n> removed`."""
    counts = ((name, len(getattr(report, name))) for name, _ in _LISTED)
    return ", ".join(
        plural(count, _NOUNS[name]) if name in _NOUNS else f"{count} {name.replace('_', ' ')}"
        for name, count in counts
    )


def show_difference(report: DiffReport) -> None:
    """Print incidents, the verdict, the affected questions and latency ratios to standard error."""
    console = standard_error()
    for line, style in _difference_lines(report, shown=_SHOWN):
        console.print(line, style=style)


def diff_markdown(report: DiffReport) -> str:
    """Render incidents, the verdict, every affected question and latency ratios as Markdown."""
    lines = [f"## {escape_markdown(diff_banner(report))}", ""]
    lines += [f"- {escape_markdown(line)}" for line, _ in _difference_lines(report, shown=None)]
    return "\n".join(lines) + "\n"


def _difference_lines(report: DiffReport, *, shown: int | None) -> Iterator[tuple[str, str]]:
    """Lines with their style; of each list so many questions, or all."""
    yield from ((incident, "red") for incident in report.incidents)
    yield contrast_line(report.first, report.second, report.contrast), ""
    for name, style in _LISTED:
        ids = getattr(report, name)
        if ids:
            rest = len(ids) - len(ids[:shown])
            more = f", and {rest} more" if rest else ""
            yield f"{name.replace('_', ' ')}: {', '.join(ids[:shown])}{more}", style
    for name, latency in report.latency.items():
        yield f"{_LATENCIES[name]}: {latency_text(latency, 'the first run')}", ""


def show_trend(summaries: Sequence[RunSummary], *, stderr: bool = False) -> None:
    """Print one row per run, in the given order.

    A run that was not completely measured has bounds in place of a pass rate, because an outage
    would look like a low one.
    """
    console = table_console(stderr=stderr)
    rows = _trend_rows(summaries)
    table, omitted = fitting_table(_TREND_HEADER, rows, console.width, importance=_TREND_IMPORTANCE)
    console.print(table)
    if omitted:
        console.print(omission(omitted, "--markdown and --json have them"), style="dim")


def trend_markdown(summaries: Sequence[RunSummary]) -> str:
    """Render one row per run as Markdown; empty without runs."""
    if not summaries:
        return ""
    table = markdown_table(_TREND_HEADER, _trend_rows(summaries), left=(0, 1))
    return "\n".join([*table, "", ""])


def _trend_rows(summaries: Sequence[RunSummary]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    earlier = ""
    for summary in summaries:
        what = f"{summary.sdk} {summary.dataset} {summary.scenario} {summary.mode}"
        # Of the default scorer nothing is said; another one makes another series.
        what += f", by {summary.scorer}" if summary.scorer != "exact" else ""
        measured = measured_questions(summary.counts)
        missing = str(summary.total - measured)
        if not measured:
            missing = f"{missing}: {missing_questions(summary.counts)}"
        done, incident = summary.latency.done, summary.incident
        cells = (
            "" if what == earlier else what,
            summary.started_at[:16],
            f"{summary.passed}/{summary.total}" if incident is None else "-",
            pass_rate_text(summary, brief=True),
            missing if incident is None else f"all: {incident.code}",
            f"{done.p50:.1f}" if done and incident is None else "-",
            f"{done.p95:.1f}" if done and incident is None else "-",
            summary.daemon.version or "-",
            (summary.daemon.build_hash or "-")[:8],
        )
        rows.append(cells)
        earlier = what
    return rows
