"""Whether runs agree: on the terminal, and as Markdown."""

import json
from collections.abc import Sequence
from difflib import unified_diff
from typing import Any

from rich.box import SIMPLE
from rich.console import JustifyMethod
from rich.table import Table
from rich.text import Text

from memconform.parity.ladder import first_difference
from memconform.parity.loaded_runs import LoadedRun
from memconform.parity.records import Pair, PairedComparison, ParityReport, ParityVerdict
from memconform.printing.console import SafeConsole, styled
from memconform.printing.escaping import escape_markdown
from memconform.reports.console import standard_error
from memconform.runs.results import QuestionResult

_STYLES = {
    ParityVerdict.IDENTICAL: "bold green",
    ParityVerdict.PARITY: "green",
    ParityVerdict.INCONCLUSIVE: "yellow",
    ParityVerdict.DRIFT: "bold red",
}
_MARKS = {
    ParityVerdict.IDENTICAL: "✅",
    ParityVerdict.PARITY: "✅",
    ParityVerdict.INCONCLUSIVE: "❔",
    ParityVerdict.DRIFT: "❌",
}
_HEADER = (
    *("pair", "verdict", "first only", "second only", "difference (95 %)", "p (Holm)"),
    *("exact p", "rankings equal", "RBO", "shapes equal"),
)
_WIDE = 160


def parity_banner(report: ParityReport) -> str:
    """`<run>, <run>: <verdict> on <compared> questions of <dataset>`, of how many if not of all."""
    names = ", ".join(run.name for run in report.runs)
    compared = min((pair.contrast.compared for pair in report.pairs), default=0)
    count = str(compared) if compared == report.questions else f"{compared} of {report.questions}"
    return f"{names}: {report.verdict.value} on {count} questions of {report.dataset}"


def show_parity(report: ParityReport, *, brief: bool = False) -> None:
    """The verdict on each pair, and where they part, to standard error."""
    console = standard_error()
    if not console.is_terminal:
        console.width = _WIDE
    if not brief:
        console.print(_table(report))
    for pair in report.pairs:
        for told, style in _told(report, pair, brief=brief):
            console.print(told, style=style)
    for reason in report.reasons:
        console.print(reason, style="yellow")


def parity_markdown(report: ParityReport) -> str:
    """The same for the summary that a CI server shows."""
    mark = _MARKS[report.verdict]
    lines = [f"## {mark} {escape_markdown(parity_banner(report))}", ""]
    lines += [f"| {' | '.join(_HEADER)} |", f"|{' --- |' * len(_HEADER)}"]
    for pair in report.pairs:
        cells = [
            _MARKS[pair.contrast.verdict] + " " + escape_markdown(cell)
            for cell in _cells(pair)[1:2]
        ]
        row = [escape_markdown(_cells(pair)[0]), *cells, *map(escape_markdown, _cells(pair)[2:])]
        lines.append(f"| {' | '.join(row)} |")
    lines.append("")
    for pair in report.pairs:
        lines += [
            f"- {escape_markdown(told.strip())}" for told, _ in _told(report, pair, brief=False)
        ]
    lines += [f"- {escape_markdown(reason)}" for reason in report.reasons]
    lines.append(f"\n{escape_markdown(_method(report))}")
    return "\n".join(lines) + "\n"


_ON_TERMINALS = ("pair", "verdict", "only", "difference (95 %)", "p (Holm)", "rankings")
"""What fits into 80 columns; the rest is in Markdown and JSON. `only`: first / second alone."""


def _table(report: ParityReport) -> Table:
    table = Table(box=SIMPLE, padding=(0, 1, 0, 0), caption=_method(report), caption_justify="left")
    for number, name in enumerate(_ON_TERMINALS):
        justify: JustifyMethod = "left" if number < 2 else "right"
        # A pair of run ids may need several lines; no figure may be cut.
        table.add_column(name, justify=justify, no_wrap=number > 0, overflow="fold")
    for pair in report.pairs:
        name, verdict, first, second, difference, _, _, rankings, *_ = _cells(pair)
        styled = line(verdict, _STYLES[pair.contrast.verdict])
        holm = f"{pair.contrast.holm_p:.2g}"
        figures = (f"{first} / {second}", difference, holm, rankings)
        table.add_row(line(name), styled, *map(line, figures))
    return table


def _method(report: ParityReport) -> str:
    return (
        f"McNemar's mid-p decides, alpha {report.alpha:g} after Holm; parity: pass rates within"
        f" {report.margin:g}, by Tango's interval of {1 - 2 * report.alpha:.0%}"
    )


def _cells(pair: Pair) -> list[str]:
    contrast, shapes = pair.contrast, pair.shapes
    low, high = 100 * contrast.difference.low, 100 * contrast.difference.high
    return [
        f"{pair.first}, {pair.second}",
        contrast.verdict.value,
        str(contrast.first_only),
        str(contrast.second_only),
        f"{100 * contrast.difference.value:+.1f} ({low:+.1f} to {high:+.1f})",
        f"{contrast.mid_p:.3g} ({contrast.holm_p:.3g})",
        f"{contrast.exact_p:.3g}",
        f"{pair.rankings.equal} of {contrast.compared}",
        f"{pair.rankings.rbo:.3f}",
        f"{shapes.equal} of {shapes.compared}" if shapes.compared else "-",
    ]


def _told(report: ParityReport, pair: Pair, *, brief: bool) -> list[tuple[str, str]]:
    """What there is to say of a pair beyond its row, each line with its style."""
    contrast = pair.contrast
    lines = [(contrast_line(pair.first, pair.second, contrast), _STYLES[contrast.verdict])]
    if pair.flips:
        flips = sum(pair.flips.values())
        parts = [f"{count} {part}" for part, count in pair.flips_by_part.items()]
        lines.append((f"  of {flips} flips {', '.join(parts)}", "red"))
    if pair.stages:
        stages = ", ".join(f"{count} {stage}" for stage, count in pair.stages.items())
        parted = sum(pair.stages.values())
        lines.append((f"  {parted} of {contrast.compared} questions part, first at: {stages}", ""))
    if brief:
        return lines
    lines += [
        (f"    {each.question}: {each.stage}{', flipped' * each.flipped}: {each.detail}", "dim")
        for each in pair.parted
    ]
    if pair.parted:
        runs = {run.name: run.run_id for run in report.runs}
        shown = f"{pair.parted[0].question} {runs[pair.first]} {runs[pair.second]}"
        lines.append((f"    side by side: memconform parity show {shown}", "dim"))
    ranked = pair.rankings
    if ranked.first_hit_earlier or ranked.first_hit_later:
        shift = (
            f"earlier on {ranked.first_hit_earlier} questions, later on {ranked.first_hit_later}"
        )
        lines.append((f"  in {pair.second} the answer's first chunk stands {shift}", ""))
    lines += [(f"  shape: {each}", "red") for each in pair.shapes.differences]
    return lines


def contrast_line(first: str, second: str, contrast: PairedComparison) -> str:
    """`<first>, <second>: <verdict>`, with what it rests on."""
    return f"{first}, {second}: {_verdict(first, second, contrast)}"


def _verdict(first: str, second: str, contrast: PairedComparison) -> str:
    low, high = 100 * contrast.equivalence.low, 100 * contrast.equivalence.high
    match contrast.verdict:
        case ParityVerdict.IDENTICAL:
            return f"identical on all {contrast.compared} questions"
        case ParityVerdict.PARITY:
            return (
                f"parity: pass rates differ by {low:+.1f} to {high:+.1f} points, which is within"
                " the margin"
            )
        case ParityVerdict.DRIFT:
            return (
                f"drift: {first} alone passes {contrast.first_only} questions, {second} alone"
                f" {contrast.second_only} (p {contrast.holm_p:.2g})"
            )
        case ParityVerdict.INCONCLUSIVE if contrast.compared == 0:
            return "inconclusive: no question was measured on both"
        case ParityVerdict.INCONCLUSIVE:
            enough = (
                f"some {contrast.settled_by:,} questions would settle it"
                if contrast.settled_by
                else "no number of questions that can be named would settle it"
            )
            return (
                f"inconclusive on {contrast.compared} questions: pass rates may differ by"
                f" {low:+.1f} to {high:+.1f} points; {enough}"
            )


def show_question(
    one: LoadedRun, other: LoadedRun, pair: tuple[QuestionResult, QuestionResult]
) -> None:
    """What two runs made of a question, side by side, to standard output."""
    console = SafeConsole()
    ours, theirs = pair
    parting = first_difference(ours, theirs)
    told = "the same" if parting is None else f"they part at {parting.stage}: {parting.detail}"
    if not (ours.verdict.measured and theirs.verdict.measured):
        told = "not measured on both, and so not compared"
    console.print(line(f"{ours.id}: {ours.question}", "bold"))
    console.print(line(told, "green" if parting is None else "red"))
    table = Table(box=SIMPLE, padding=(0, 1, 0, 0))
    for heading in ("", one.name, other.name):
        table.add_column(line(heading), overflow="fold")
    for name, left, right in _rows(ours, theirs):
        style = "" if left == right else "red"
        table.add_row(line(name, "bold"), line(left, style), line(right, style))
    console.print(table)
    for each in _prompt_difference(ours, theirs):
        console.print(line(each, {"+": "green", "-": "red"}.get(each[:1], "dim")))


def _rows(one: QuestionResult, other: QuestionResult) -> list[tuple[str, str, str]]:
    rows = [("verdict", _ended(one), _ended(other))]
    if one.seen and other.seen:
        rows.append(("request", one.seen.request[:12], other.seen.request[:12]))
    ranks = range(max(len(one.ranking), len(other.ranking)))
    rows += [(f"rank {rank + 1}", _ranked(one, rank), _ranked(other, rank)) for rank in ranks]
    rows.append(("answer", one.answer or "-", other.answer or "-"))
    rows.append(("cites", _cites(one), _cites(other)))
    return rows


def _ended(result: QuestionResult) -> str:
    if result.error is not None:
        return f"{result.verdict.value}: {result.error.code}: {result.error.message}"
    return f"{result.verdict.value}, score {result.score}"


def _ranked(result: QuestionResult, rank: int) -> str:
    if rank >= len(result.ranking):
        return "-"
    chunk = result.ranking[rank]
    content = (chunk.content or "")[:8]
    hit = " (holds the answer)" if result.first_hit == rank + 1 else ""
    return f"{chunk.score:.6f} {chunk.path} {content}{hit}"


def _cites(result: QuestionResult) -> str:
    return ", ".join(cited.path for cited in result.citations) or "-"


def _prompt_difference(one: QuestionResult, other: QuestionResult) -> Sequence[str]:
    ours, theirs = ((r.seen.prompts if r.seen else None) for r in (one, other))
    if ours is None or theirs is None or ours == theirs:
        return []
    return list(unified_diff(_flat(ours), _flat(theirs), "prompt", "prompt", lineterm="", n=1))


def _flat(prompts: Sequence[dict[str, Any]]) -> list[str]:
    """What was sent as lines of text."""
    lines: list[str] = []
    for prompt in prompts:
        lines += [f"{key}: {prompt[key]}" for key in sorted(prompt) if key != "messages"]
        messages = prompt.get("messages")
        for message in messages if isinstance(messages, list) else [messages]:
            if isinstance(message, dict) and isinstance(message.get("content"), str):
                lines += [f"[{message.get('role')}]", *message["content"].splitlines()]
            else:
                lines.append(json.dumps(message, ensure_ascii=False))
    return lines


def line(text: str, style: str = "") -> Text:
    """A table's cell, or a line, in its style."""
    return styled([(text, style)])
