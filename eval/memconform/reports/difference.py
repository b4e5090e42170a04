"""What changed between two runs, and how an SDK fared over time, on the terminal."""

from collections.abc import Sequence

from rich.box import SIMPLE
from rich.table import Table

from memconform.parity.run_diff import DiffReport
from memconform.printing.console import SafeConsole
from memconform.reports.console import standard_error
from memconform.reports.parity import contrast_line
from memconform.runs.results import RunSummary

_LISTED = (
    ("regressions", "red"),
    ("fixes", "green"),
    ("not_measured", "yellow"),
    ("unstable", "yellow"),
    ("new", ""),
    ("removed", ""),
)
_SHOWN = 20
_WIDE = 160


def diff_banner(report: DiffReport) -> str:
    """`<n> regressions, <n> fixes, <n> not measured, <n> new, <n> removed, <n> unstable`."""
    counts = (f"{len(getattr(report, name))} {name.replace('_', ' ')}" for name, _ in _LISTED)
    return ", ".join(counts)


def show_difference(report: DiffReport) -> None:
    console = standard_error()
    for incident in report.incidents:
        console.print(incident, style="red")
    console.print(contrast_line(report.first, report.second, report.contrast))
    for name, style in _LISTED:
        ids = getattr(report, name)
        if ids:
            more = f", and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
            told = f"{name.replace('_', ' ')}: {', '.join(ids[:_SHOWN])}{more}"
            console.print(told, style=style)
    for name, latency in report.latency.items():
        ratio = latency.ratio
        told = f"{name.replace('_', ' ')}: {ratio.value:.4g} times the first run's"
        console.print(f"{told} (95 %: {ratio.low:.4g} to {ratio.high:.4g})")


def show_trend(summaries: Sequence[RunSummary]) -> None:
    """A line a run, the oldest first, to standard output.

    A run that was not wholly measured has no rate: an outage would look like a low one.
    """
    console = SafeConsole()
    if not console.is_terminal:
        console.width = _WIDE
    table = Table(box=SIMPLE, padding=(0, 1, 0, 0))
    for name in ("what", "begun", "version", "build"):
        table.add_column(name, overflow="fold")
    for name in ("passed", "pass rate (95 %)", "not measured", "p50 ms", "p95 ms"):
        table.add_column(name, justify="right", no_wrap=True)
    earlier = ""
    for summary in summaries:
        what = f"{summary.sdk} {summary.dataset} {summary.scenario} {summary.mode}"
        low, high = summary.pass_rate_interval
        rate = summary.pass_rate
        measured = sum(count for v, count in summary.counts.items() if v.measured)
        missing = summary.total - measured
        done, incident = summary.latency.done, summary.incident
        cells = (
            "" if what == earlier else what,
            summary.started_at[:16],
            summary.daemon.version or "-",
            (summary.daemon.build_hash or "-")[:8],
            f"{summary.passed}/{summary.total}" if incident is None else "-",
            "-" if rate is None or missing or incident else f"{rate:.3f} ({low:.3f}-{high:.3f})",
            str(missing) if incident is None else f"all: {incident.code}",
            f"{done.p50:.1f}" if done and incident is None else "-",
            f"{done.p95:.1f}" if done and incident is None else "-",
        )
        table.add_row(*cells)
        earlier = what
    console.print(table)
