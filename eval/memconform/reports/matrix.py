"""Table that compares several SDKs, with their agreement."""

from collections.abc import Sequence

from rich.table import Table

from memconform.daemons.availability import SkippedSdk
from memconform.printing.console import standard_error, styled
from memconform.printing.errors import render_error
from memconform.printing.escaping import Lines
from memconform.printing.plurals import plural
from memconform.reports.console import verdict_counts
from memconform.reports.fitted_table import fitting_table, omission
from memconform.reports.rates import NO_FIGURE, pass_rate_text
from memconform.results.agreement import Agreement
from memconform.runs.results import RunSummary
from memconform.stats.quantiles import QuantileSummary


def show_matrix(
    summaries: Sequence[RunSummary], skipped: Sequence[SkippedSdk], agreement: Agreement | None
) -> None:
    """Print a row per SDK, their agreement, and the skipped SDKs to standard error."""
    console = standard_error()
    if len(summaries) > 1:
        table, omitted = _table(summaries, console.width)
        console.print(table)
        if omitted:
            console.print(omission(omitted, "the result files have them"), style="dim")
        # Each stood at the end of its run, which has scrolled away.
        for summary in summaries:
            for reason in summary.reasons:
                console.print(f"{summary.sdk}: {reason}", style="yellow")
    if agreement is not None:
        for line, good in _verdicts(agreement):
            console.print(line, style="green" if good else "red")
    for sdk in skipped:
        console.print(Lines(f"{sdk.sdk} skipped: {render_error(sdk.error)}"), style="yellow")


_HEADER = ("SDK", "verdicts", "pass rate (95 %)", "p50 ms", "TTFT ms", "MiB", "ready ms")


def _table(summaries: Sequence[RunSummary], width: int) -> tuple[Table, list[str]]:
    rows = [
        (
            styled([(summary.sdk, "bold")]),
            verdict_counts(summary),
            pass_rate_text(summary, brief=True),
            _p50(summary.latency.done),
            _p50(summary.latency.first_delta),
            _whole(summary.daemon.rss_peak_bytes, 2**20),
            _whole(summary.daemon.ready_ms, 1),
        )
        for summary in summaries
    ]
    return fitting_table(_HEADER, rows, width)


def _p50(values: QuantileSummary | None) -> str:
    return NO_FIGURE if values is None else f"{values.p50:.1f}"


def _whole(value: float | None, unit: int) -> str:
    return NO_FIGURE if value is None else f"{value / unit:.0f}"


def _verdicts(agreement: Agreement) -> list[tuple[str, bool]]:
    sdks, total = ", ".join(agreement.sdks), agreement.compared
    equal, gap = agreement.rankings_equal, agreement.largest_score_difference
    questions = plural(total, "question")
    rankings = f"rankings: {sdks} equal on {equal} of {questions}"
    if equal == total:
        rankings += f", scores differ by at most {gap:.1g}" if gap else ", scores identical"
    lines = [(rankings, equal == total > 0)]
    if agreement.answers_equal is not None:
        equal = agreement.answers_equal
        lines.append((f"answers: equal on {equal} of {questions}", equal == total > 0))
    if total < agreement.questions:
        missing = plural(agreement.questions - total, "question")
        lines.append((f"{missing} not measured on every SDK", False))
    lines += [(f"  {d.question}: {d.sdk}: {d.detail}", False) for d in agreement.differences]
    return lines
