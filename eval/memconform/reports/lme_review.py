"""Reports of two results of the replay, compared."""

from collections.abc import Iterator, Sequence

from memconform.printing.escaping import escape_markdown
from memconform.printing.plurals import listed, plural
from memconform.replay.review import is_drop
from memconform.replay.review_records import Flip, LmeReview
from memconform.reports.accuracies import accuracy_text
from memconform.reports.console import table_console
from memconform.reports.fitted_table import fitting_table, omission
from memconform.reports.markdown import markdown_table
from memconform.reports.parity import contrast_line
from memconform.reports.rates import NO_FIGURE, format_rate, latency_text
from memconform.stats.paired_comparison import PairedComparison, ParityVerdict

_BEFORE, _AFTER = "before", "after"
_SHOWN = 20
"""Flips of each list on the terminal; JSON and Markdown have all."""
_PREVIEW = 80
"""Characters of an answer on the terminal."""
_HEADER = (
    *("questions", "verdict", "compared", "right before", "right after", "only before"),
    *("only after", "after - before (95 %)", "p (Holm)"),
)
_IMPORTANCE = ("verdict", "after - before (95 %)", "p (Holm)", "only before", "only after")


def lme_review_banner(report: LmeReview) -> str:
    """Format `<verdict>: <n> regressions, <n> fixes, <n> not measured`, with what has no pair."""
    unpaired = len(report.only_before) + len(report.only_after)
    drift = "significantly worse" if is_drop(report.overall) else "significantly better"
    verdict = report.overall.verdict
    return (
        f"{drift if verdict is ParityVerdict.DRIFT else verdict.value}:"
        f" {plural(len(report.regressions), 'regression')}, {plural(len(report.fixes), 'fix')},"
        f" {len(report.not_measured)} not measured, {unpaired} in one result only"
    )


def show_lme_review(report: LmeReview) -> None:
    """Print what differs, the comparisons, and the flips to standard error."""
    console = table_console(stderr=True)
    for line in _heads(report):
        console.print(line)
    table, omitted = fitting_table(
        _HEADER, _rows(report), console.width, names=1, importance=_IMPORTANCE
    )
    console.print(table)
    console.print(contrast_line(_BEFORE, _AFTER, report.overall, "history"))
    for line in _latency(report):
        console.print(line)
    for title, flips, style in (
        ("regressions", report.regressions, "red"),
        ("fixes", report.fixes, "green"),
    ):
        if flips:
            console.print(f"{title}: {len(flips)}", style=style)
        for flip in flips[:_SHOWN]:
            console.print(f"  {_flip_line(flip)}")
            console.print(f"    before: {flip.answer_before[:_PREVIEW]}", style="dim")
            console.print(f"    after: {flip.answer_after[:_PREVIEW]}", style="dim")
        if len(flips) > _SHOWN:
            console.print(f"  and {len(flips) - _SHOWN} more: --json and --markdown list them")
    for line in _absences(report):
        console.print(line, style="yellow")
    for note in (*report.reasons, omission(omitted, "--json has them")):
        if note:
            console.print(note, style="dim")


def lme_review_markdown(report: LmeReview) -> str:
    """Render the whole comparison as Markdown."""
    lines = [f"## {escape_markdown(lme_review_banner(report))}", ""]
    lines += [f"- {escape_markdown(line)}" for line in _heads(report)]
    lines += ["", *markdown_table(_HEADER, _rows(report), left=range(len(_HEADER))), ""]
    overall = contrast_line(_BEFORE, _AFTER, report.overall, "history")
    notes = (overall, *_latency(report), *_absences(report), *report.reasons)
    lines += [f"- {escape_markdown(note)}" for note in notes]
    for title, flips in (("Regressions", report.regressions), ("Fixes", report.fixes)):
        if flips:
            rows = [[flip.question, flip.category, *_flip_cells(flip)] for flip in flips]
            header = ["question", "category", "verdict", "rank of gold", "before", "after"]
            table = markdown_table(header, rows, left=range(len(header)))
            lines += ["", f"### {title}", "", *table]
    return "\n".join(lines) + "\n"


def _heads(report: LmeReview) -> Iterator[str]:
    for name, side in ((_BEFORE, report.before), (_AFTER, report.after)):
        yield (
            f"{name}: {side.sdk} of {side.started_at}, {side.path}:"
            f" {accuracy_text(side.accuracy)} of {plural(side.questions, 'question')}"
        )
    if not report.changes:
        yield "what differs: no setting, SDK, version or build"
    for change in report.changes:
        yield f"what differs: {change.name}: {change.before} -> {change.after}"


def _latency(report: LmeReview) -> Iterator[str]:
    if report.latency is not None:
        yield f"retrieval latency: {latency_text(report.latency, 'that before')}"


def _absences(report: LmeReview) -> Iterator[str]:
    if report.not_measured:
        yield (
            "not measured, and not compared: "
            + ", ".join(
                f"{each.question} (before: {each.before or 'measured'},"
                f" after: {each.after or 'measured'})"
                for each in report.not_measured[:_SHOWN]
            )
            + _more(report.not_measured)
        )
    for name, ids in ((_BEFORE, report.only_before), (_AFTER, report.only_after)):
        if ids:
            yield f"only in the result {name}: {listed(ids, most=_SHOWN)}"


def _more(items: Sequence[object]) -> str:
    return f", and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""


def _rows(report: LmeReview) -> list[list[str]]:
    overall = ["all", *_cells(report.overall)]
    return [overall, *([name, *_cells(each)] for name, each in report.by_category.items())]


def _cells(comparison: PairedComparison) -> list[str]:
    # Shown as after minus before, so that a drop has a minus.
    low, value, high = (
        0.0 - 100 * part
        for part in (
            comparison.difference.high,
            comparison.difference.value,
            comparison.difference.low,
        )
    )
    compared = comparison.compared
    return [
        comparison.verdict.value,
        str(compared),
        str(comparison.both + comparison.first_only),
        str(comparison.both + comparison.second_only),
        str(comparison.first_only),
        str(comparison.second_only),
        format_rate(value, (low, high), measured=compared, spec="+.1f"),
        f"{comparison.holm_p:.2g}" if compared else NO_FIGURE,
    ]


def _flip_line(flip: Flip) -> str:
    same = ", same answer" if flip.same_answer else ""
    verdict, ranks, *_ = _flip_cells(flip)
    return f"{flip.question} ({flip.category}): {verdict}, rank of gold {ranks}{same}"


def _flip_cells(flip: Flip) -> list[str]:
    ranks = [
        NO_FIGURE if rank is None else str(rank)
        for rank in (flip.gold_rank_before, flip.gold_rank_after)
    ]
    return [
        f"{flip.before} -> {flip.after}",
        " -> ".join(ranks),
        flip.answer_before,
        flip.answer_after,
    ]
