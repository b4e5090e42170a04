"""Judges on the terminal: their calibration, and how two of them differ."""

from collections.abc import Sequence

from memconform.printing.console import standard_error
from memconform.reports.fitted_table import wrapped_table
from memconform.reports.rates import NOT_MEASURED, format_rate
from memconform.results.judge_comparison import Disagreement, JudgeComparison
from memconform.scoring.judge.calibration import Calibration
from memconform.scoring.judge.records import ErrorRate

_SHOWN = 20
_ANSWER = 200
"""Characters of an answer that are shown."""


def _percent(rate: ErrorRate) -> str:
    if rate.rate is None:
        return NOT_MEASURED
    low, high = rate.interval
    percent = format_rate(
        100 * rate.rate, (100 * low, 100 * high), measured=rate.items, spec=".1f", unit=" %"
    )
    return f"{rate.errors}/{rate.items}  {percent}"


def show_calibration(calibration: Calibration) -> None:
    """Error rates by kind and by group, and what else says whether a judge can be trusted."""
    console = standard_error()
    table = wrapped_table(("group", "kind", "errors (95 %)"))
    for group, rate in calibration.groups.items():
        table.add_row(group, "all judged", _percent(rate), style="bold")
        for kind in calibration.kinds:
            if kind.group == group:
                table.add_row("", kind.kind, _percent(kind.error))
    console.print(table)
    bias = calibration.length_bias
    for line in (
        "errors: right answers that it rejects, wrong ones that it accepts",
        (
            f"right on {_share_right(calibration.errors)} of the judged answers"
            f" (a constant judge: {calibration.constant_judge:.3f};"
            f" {100 * calibration.base_rate:.0f} % of them are right)"
        ),
        f"long wrong answers are accepted {100 * bias:+.1f} points more often than short ones"
        if bias is not None
        else "",
        (
            f"contradicted itself on {calibration.contradicted} of {calibration.repeated} items"
            " asked again"
        ),
        f"{calibration.settled} items needed no judge; {calibration.failed} got no verdict",
        (
            f"{calibration.input_tokens} tokens in, {calibration.output_tokens} out,"
            f" ${calibration.cost_usd:.4f}"
        ),
    ):
        if line:
            console.print(line)


def _share_right(errors: ErrorRate) -> str:
    return "none" if errors.rate is None else f"{1 - errors.rate:.3f}"


def calibration_banner(calibration: Calibration) -> str:
    """`<judge>: false_rejects=<rate> false_accepts specific=<rate> vague=… injected=…; weak: …`."""
    rates = {
        group: "none" if rate.rate is None else f"{rate.rate:.4f}"
        for group, rate in calibration.groups.items()
    }
    weak = calibration.weak_groups
    verdict = f"; weak: {calibration.weakness()}" if weak else "; no group above 5 %"
    return (
        f"{calibration.judge.model}: false_rejects={rates['right']}"
        f" false_accepts specific={rates['specific-wrong']} vague={rates['vague-wrong']}"
        f" injected={rates['injected']}{verdict}"
    )


def comparison_banner(comparison: JudgeComparison) -> str:
    """`<equal>/<compared> verdicts equal, kappa=<value>[, <n> not compared]`."""
    kappa = "undefined" if comparison.cohen_kappa is None else f"{comparison.cohen_kappa:.4f}"
    missing = f", {comparison.not_compared} not compared" if comparison.not_compared else ""
    return f"{comparison.equal}/{comparison.compared} verdicts equal, kappa={kappa}{missing}"


def show_comparison(comparison: JudgeComparison) -> None:
    """The counts, and the disagreements side by side."""
    console = standard_error()
    for label, run, scorer in zip("AB", comparison.runs, comparison.scorers, strict=True):
        console.print(f"{label}: {scorer}, {run}")
    console.print(
        f"both pass {comparison.both_pass}, only A {comparison.first_only},"
        f" only B {comparison.second_only}, both fail {comparison.both_fail}"
    )
    _show_disagreements(comparison.disagreements)


def _show_disagreements(disagreements: Sequence[Disagreement]) -> None:
    console = standard_error()
    for each in disagreements[:_SHOWN]:
        console.print(f"{each.id}: {each.question}", style="bold")
        console.print(f"  answer: {each.answer[:_ANSWER]}")
        for label, verdict, reason in zip("AB", each.verdicts, each.reasons, strict=True):
            console.print(f"  {label}: {verdict}: {reason}")
    if len(disagreements) > _SHOWN:
        console.print(f"… and {len(disagreements) - _SHOWN} more; --json FILE has all")
