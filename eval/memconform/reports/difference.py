"""Reports of changes between two runs, and of trends over many."""

from collections.abc import Sequence

from memconform.printing.console import standard_error
from memconform.printing.plurals import plural
from memconform.reports.console import table_console
from memconform.reports.fitted_table import fitting_table, omission
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
    for incident in report.incidents:
        console.print(incident, style="red")
    console.print(contrast_line(report.first, report.second, report.contrast))
    for name, style in _LISTED:
        ids = getattr(report, name)
        if ids:
            more = f", and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
            line = f"{name.replace('_', ' ')}: {', '.join(ids[:_SHOWN])}{more}"
            console.print(line, style=style)
    for name, latency in report.latency.items():
        console.print(f"{_LATENCIES[name]}: {latency_text(latency, 'the first run')}")


def show_trend(summaries: Sequence[RunSummary]) -> None:
    """Print one row per run to standard output, in the given order.

    A run that was not completely measured has bounds in place of a pass rate, because an outage
    would look like a low one.
    """
    console = table_console(stderr=False)
    rows = []
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
    table, omitted = fitting_table(_TREND_HEADER, rows, console.width, importance=_TREND_IMPORTANCE)
    console.print(table)
    if omitted:
        console.print(omission(omitted, "a wider terminal has room"), style="dim")
