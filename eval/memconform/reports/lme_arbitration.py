"""Report on a judge and the person who checked it."""

from collections.abc import Iterator

from memconform.printing.console import standard_error
from memconform.printing.plurals import plural
from memconform.replay.arbitration_records import LmeArbitration
from memconform.reports.accuracies import accuracy_text, estimate_cell
from memconform.reports.rates import format_rate
from memconform.scoring.judge.records import ErrorRate

_SHOWN = 20
"""Overruled verdicts on the terminal; JSON has all."""


def arbitration_banner(report: LmeArbitration) -> str:
    """Format `<n> of <n> answers arbitrated, <n> overruled: <score>, with overrides <score>`."""
    return (
        f"{report.arbitrated} of {plural(report.selected, 'answer')} arbitrated,"
        f" {len(report.overruled)} overruled: {accuracy_text(report.score)}, with overrides"
        f" {accuracy_text(report.score_with_overrides)}"
    )


def show_arbitration(report: LmeArbitration) -> None:
    """Print the agreement, the judge's errors and the overruled verdicts to standard error."""
    console = standard_error()
    for line in _lines(report):
        console.print(line)
    for each in report.overruled[:_SHOWN]:
        note = f": {each.note}" if each.note else ""
        console.print(f"  {each.question}: {each.judge} -> {each.person} by {each.by}{note}")
    if len(report.overruled) > _SHOWN:
        console.print(f"  and {len(report.overruled) - _SHOWN} more: --json lists them")
    for note in report.notes:
        console.print(note, style="yellow")


def _lines(report: LmeArbitration) -> Iterator[str]:
    people = ", ".join(report.by) or "nobody"
    yield f"{report.sdk}, {report.selection}: {report.arbitrated} of {report.selected} by {people}"
    if report.agreement is not None:
        agreement = f"{100 * report.agreement:.1f} %"
        yield f"judge and person agree on {agreement} of {plural(report.compared, 'answer')}"
    if report.kappa is not None:
        kappa = format_rate(report.kappa.value, report.kappa.interval, measured=1, spec=".2f")
        yield f"Cohen's kappa: {kappa}"
    for what, errors in (
        ("fails of right answers", report.false_rejects),
        ("passes of wrong answers", report.false_accepts),
    ):
        if errors is not None:
            yield f"the judge {what}: {_error_rate(errors)}"
    if report.corrected is not None:
        yield f"score without the judge's errors: {estimate_cell(report.corrected)} %"


def _error_rate(errors: ErrorRate) -> str:
    if errors.rate is None:
        return "none in the selection"
    low, high = errors.interval
    share = format_rate(
        100 * errors.rate, (100 * low, 100 * high), measured=errors.items, spec=".1f"
    )
    return f"{errors.errors} of {errors.items}, {share} %"
