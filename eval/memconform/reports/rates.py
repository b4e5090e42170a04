"""Rates as text. Where nothing was measured there is no rate and no interval, but the reason."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from memconform.printing.plurals import plural
from memconform.runs.results import FloorResult, RunSummary
from memconform.runs.verdict import unmeasured_counts
from memconform.scoring.statuses import QuestionStatus

if TYPE_CHECKING:
    from memconform.stats.latency_ratio import LatencyRatio

NOT_MEASURED = "not measured"
NO_FIGURE = "-"
"""Of what has no figure, in a cell of a table."""


def format_rate(
    rate: float | None,
    interval: tuple[float, float] | None,
    *,
    measured: int,
    spec: str = ".3f",
    unit: str = "",
) -> str:
    """Format `0.900 (0.699 to 0.972)`, or `not measured`.

    Args:
        rate: the estimate; None if there is none.
        interval: its confidence interval, if one was computed.
        measured: the number of measurements behind the rate.
        spec: the format of each number.
        unit: printed after the rate, such as ` %`.
    """
    if rate is None or measured <= 0:
        return NOT_MEASURED
    text = f"{rate:{spec}}{unit}"
    return text if interval is None else f"{text} ({interval[0]:{spec}} to {interval[1]:{spec}})"


def format_bounds(least: float, most: float, spec: str = ".3f") -> str:
    """Format what a rate would be if all that was not measured failed, and if all of it passed."""
    return f"{least:{spec}} to {most:{spec}}"


def pass_rate_text(summary: RunSummary, *, brief: bool = False) -> str:
    """Format a run's pass rate: with its interval, as bounds, or as the reason why it has none.

    Unmeasured questions leave bounds only. `brief` omits reasons, for tables that have them in
    another column.
    """
    measured = measured_questions(summary.counts)
    missing = summary.total - measured
    if summary.incident is not None or summary.pass_rate is None or not measured:
        reason = summary.incident.code if summary.incident else missing_questions(summary.counts)
        return f"{NOT_MEASURED}: {reason}" if reason and not brief else NOT_MEASURED
    if missing:
        most = (summary.passed + missing) / summary.total
        bounds = format_bounds(summary.pass_rate, most)
        return bounds if brief else f"{bounds}: {plural(missing, 'question')} not measured"
    return format_rate(summary.pass_rate, summary.pass_rate_interval, measured=measured)


def banner(summary: RunSummary) -> str:
    """Format `<sdk>: <passed>/<total> pass_rate=<rate> mean_score=<score>[ not_measured=<n>]`.

    An unknown rate is `none`. Questions that were not measured leave bounds, `0.6500..1.0000`: the
    lower one alone would look like the rate of a daemon that answers badly. Where nothing was
    measured, the counts by status follow. A run that an incident ended has no rates:
    `<sdk>: <code>; <n> of <total> questions measured`.
    """
    measured = measured_questions(summary.counts)
    if summary.incident is not None:
        return (
            f"{summary.sdk}: {summary.incident.code};"
            f" {measured} of {summary.total} questions measured"
        )
    rates = (summary.pass_rate, summary.mean_score)
    pass_rate, mean_score = ("none" if rate is None else f"{rate:.4f}" for rate in rates)
    counts = f"{summary.passed}/{summary.total}"
    missing = f" not_measured={summary.total - measured}" if measured < summary.total else ""
    if missing and measured:
        most = (summary.passed + summary.total - measured) / summary.total
        pass_rate += f"..{most:.4f}"
    if missing and not measured:
        missing += f" ({missing_questions(summary.counts)})"
    return f"{summary.sdk}: {counts} pass_rate={pass_rate} mean_score={mean_score}{missing}"


def measured_questions(counts: Mapping[QuestionStatus, int]) -> int:
    """The number of questions with a score."""
    return sum(count for status, count in counts.items() if status.measured)


def is_complete(summary: RunSummary) -> bool:
    """Whether every question was measured, so that the rates are rates and no bounds."""
    measured = measured_questions(summary.counts)
    return summary.incident is None and 0 < summary.total == measured


def is_missed(floor: FloorResult) -> bool:
    """Whether a floor is missed however the unmeasured questions would have ended."""
    return floor.total > 0 and floor.best_rate < floor.floor


def missing_questions(counts: Mapping[QuestionStatus, int]) -> str:
    """How the questions without a score ended: `18 daemon_error, 2 timeout`."""
    return ", ".join(unmeasured_counts(counts))


def latency_text(latency: "LatencyRatio", base: str) -> str:
    """Format `1.20x <base> (95 %: 1.11 to 1.31)`."""
    ratio = latency.ratio
    return f"{ratio.value:.2f}x {base} (95 %: {ratio.low:.2f} to {ratio.high:.2f})"
