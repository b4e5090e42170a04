"""Parity reports: on the terminal and as Markdown, and one question of two runs side by side."""

import json
import re
from collections.abc import Mapping, Sequence
from difflib import unified_diff
from string import ascii_uppercase
from typing import Any

from rich.table import Table
from rich.text import Text

from memconform.printing.commands import suggested_command
from memconform.printing.console import SafeConsole, styled
from memconform.printing.escaping import Lines, escape_markdown
from memconform.printing.plurals import plural
from memconform.reports.console import table_console
from memconform.reports.fitted_table import fitting_table, omission, wrapped_table
from memconform.reports.markdown import markdown_table
from memconform.reports.rates import format_rate
from memconform.results.divergence import first_difference
from memconform.results.loaded_runs import LoadedRun
from memconform.results.records import Pair, ParityReport
from memconform.runs.results import QuestionResult
from memconform.stats.paired_comparison import PairedComparison, ParityVerdict

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
    *("McNemar's exact p", "rankings equal", "RBO", "shapes equal"),
)


def parity_banner(report: ParityReport) -> str:
    """Format `<run>, <run>: <verdict> on <compared>[ of <all>] questions of <dataset>`."""
    names = ", ".join(run.name for run in report.runs)
    compared = min((pair.contrast.compared for pair in report.pairs), default=0)
    questions = plural(report.questions, "question")
    count = questions if compared == report.questions else f"{compared} of {questions}"
    return f"{names}: {report.verdict.value} on {count} of {report.dataset}"


def show_parity(report: ParityReport, *, brief: bool = False) -> None:
    """Print the verdict on each pair, and where its runs differ, to standard error.

    `brief` omits the table and the individual questions.
    """
    console = table_console(stderr=True)
    report, legend = _labelled(report)
    for pair in report.pairs:
        for text, style in _pair_lines(report, pair, brief=brief):
            # A command is not wrapped.
            console.print(text, style=style, soft_wrap=_SHOW in text or None)
    for reason in report.reasons:
        console.print(reason, style="yellow")
    # Last, so that it does not scroll away.
    if not brief:
        table, omitted = _table(report, console.width)
        console.print(table)
        if omitted:
            console.print(omission(omitted, "--markdown and --json have them"), style="dim")
    if legend:
        console.print(legend, style="dim")


def parity_markdown(report: ParityReport) -> str:
    """Render the comparison as Markdown, for the job summary of a CI server."""
    mark = _MARKS[report.verdict]
    lines = [f"## {mark} {escape_markdown(parity_banner(report))}", ""]
    report, legend = _labelled(report)
    rows = []
    for pair in report.pairs:
        name, verdict, *figures = _cells(pair)
        rows.append([name, f"{_MARKS[pair.contrast.verdict]} {verdict}", *figures])
    lines += [*markdown_table(_HEADER, rows, left=range(len(_HEADER))), ""]
    if legend:
        lines += [escape_markdown(legend), ""]
    for pair in report.pairs:
        lines += [
            f"- {escape_markdown(text.strip())}"
            for text, _ in _pair_lines(report, pair, brief=False)
        ]
    lines += [f"- {escape_markdown(reason)}" for reason in report.reasons]
    lines.append(f"\n{escape_markdown(_method(report))}")
    return "\n".join(lines) + "\n"


def _labels(runs: Sequence[tuple[str, str, str]]) -> tuple[dict[str, str], str]:
    """Choose letters for runs that are named by their ids, and a legend; both may be empty.

    Several runs of one SDK are named by their ids, which are too long for the columns of a table.

    Args:
        runs: Name, SDK and id of each run; at most 26 of them get a letter.
    """
    names = {name for name, _, _ in runs}
    ids = [name for name, sdk, run_id in runs if name == run_id != sdk]
    letters = (letter for letter in ascii_uppercase if letter not in names)
    labels = dict(zip(ids, letters, strict=False))
    legend = [
        f"{labels[name]}: {sdk}, run {run_id}" for name, sdk, run_id in runs if name in labels
    ]
    return labels, "; ".join(legend)


def _labelled(report: ParityReport) -> tuple[ParityReport, str]:
    """Replace run ids that serve as names by short labels, and return the legend."""
    labels, legend = _labels([(run.name, run.sdk, run.run_id) for run in report.runs])
    if not labels:
        return report, ""
    runs = [run.model_copy(update={"name": labels.get(run.name, run.name)}) for run in report.runs]
    pairs = [
        pair.model_copy(
            update={
                "first": labels.get(pair.first, pair.first),
                "second": labels.get(pair.second, pair.second),
            }
        )
        for pair in report.pairs
    ]
    reasons = [_relabelled(reason, labels) for reason in report.reasons]
    return report.model_copy(update={"runs": runs, "pairs": pairs, "reasons": reasons}), legend


def _relabelled(text: str, labels: Mapping[str, str]) -> str:
    # A run id inside a path stays, so that the path can still be opened.
    names = "|".join(map(re.escape, labels))
    return re.sub(rf"(?<![\w/.-])(?:{names})(?![\w/-])", lambda match: labels[match[0]], text)


_SHOW = "memconform parity show"
_TERMINAL_COLUMNS = ("pair", "verdict", "only", "difference (95 %)", "p (Holm)", "rankings")
"""Columns that fit into 80 characters; the others are in Markdown and JSON. `only` is the number of
questions that the first or the second run alone passes."""
_IMPORTANCE = ("difference (95 %)", "only", "rankings", "p (Holm)")


def _table(report: ParityReport, width: int) -> tuple[Table, list[str]]:
    rows = []
    for pair in report.pairs:
        name, verdict, first, second, difference, _, _, rankings, *_ = _cells(pair)
        styled_verdict = line(verdict, _STYLES[pair.contrast.verdict])
        holm = f"{pair.contrast.holm_p:.2g}"
        rows.append((name, styled_verdict, f"{first} / {second}", difference, holm, rankings))
    table, omitted = fitting_table(_TERMINAL_COLUMNS, rows, width, importance=_IMPORTANCE)
    table.caption = Lines(_method(report))
    table.caption_justify = "left"
    return table, omitted


def _method(report: ParityReport) -> str:
    test, interval = "McNemar's mid-p", "Tango's"
    if any(pair.contrast.clusters is not None for pair in report.pairs):
        test, interval = "The exact sign-flip of clusters", "the cluster-t"
    return (
        f"{test} decides, alpha {report.alpha:g} after Holm;\nparity: pass rates within"
        f" {report.margin:g}, by {interval} {1 - 2 * report.alpha:.0%} interval"
    )


def _cells(pair: Pair) -> list[str]:
    contrast, shapes = pair.contrast, pair.shapes
    ranked = contrast.compared if pair.rankings.compared is None else pair.rankings.compared
    difference = contrast.difference
    interval = (100 * difference.low, 100 * difference.high)
    return [
        f"{pair.first}, {pair.second}",
        contrast.verdict.value,
        str(contrast.first_only),
        str(contrast.second_only),
        format_rate(100 * difference.value, interval, measured=contrast.compared, spec="+.1f"),
        f"{_deciding_p(contrast):.3g} ({contrast.holm_p:.3g})",
        f"{contrast.exact_p:.3g}",
        f"{pair.rankings.equal} of {ranked}" if ranked else "-",
        f"{pair.rankings.rbo:.3f}" if ranked else "-",
        f"{shapes.equal} of {shapes.compared}" if shapes.compared else "-",
    ]


def _pair_lines(report: ParityReport, pair: Pair, *, brief: bool) -> list[tuple[str, str]]:
    """Describe a pair beyond its row of the table: lines, each with its style."""
    contrast = pair.contrast
    lines = [(contrast_line(pair.first, pair.second, contrast), _STYLES[contrast.verdict])]
    if pair.flips:
        flips = plural(sum(pair.flips.values()), "flip")
        parts = [f"{count} {part}" for part, count in pair.flips_by_part.items()]
        lines.append((f"  {flips}: {', '.join(parts)}", "red"))
    if pair.stages:
        stages = ", ".join(f"{count} {stage}" for stage, count in pair.stages.items())
        differing = f"{sum(pair.stages.values())} of {plural(contrast.compared, 'question')}"
        lines.append((f"  different on {differing}, first at: {stages}", ""))
    if brief:
        return lines
    lines += [
        (f"    {entry.question}: {entry.stage}{', flipped' * entry.flipped}: {entry.detail}", "dim")
        for entry in pair.parted
    ]
    if pair.parted:
        runs = {run.name: run.path or run.run_id for run in report.runs}
        arguments = (pair.parted[0].question, runs[pair.first], runs[pair.second])
        # Behind the dashes, an id that begins with one is no flag.
        dashes = ("--",) if arguments[0].startswith("-") else ()
        shown = suggested_command("parity", "show", *dashes, *arguments)
        lines.append((f"    side by side: {shown}", "dim"))
    rankings = pair.rankings
    if rankings.first_hit_earlier or rankings.first_hit_later:
        earlier = plural(rankings.first_hit_earlier, "question")
        shift = f"earlier on {earlier}, later on {rankings.first_hit_later}"
        lines.append((f"  {pair.second} ranks the first chunk with the answer {shift}", ""))
    lines += [(f"  shape: {difference}", "red") for difference in pair.shapes.differences]
    return lines


def contrast_line(
    first: str, second: str, contrast: PairedComparison, cluster: str = "cluster"
) -> str:
    """Format `<first>, <second>: <verdict>`, with the figures behind the verdict.

    `cluster` is the noun for what questions share if they are not independent.
    """
    return f"{first}, {second}: {_verdict(first, second, contrast, cluster)}"


def _verdict(first: str, second: str, contrast: PairedComparison, cluster: str) -> str:
    low, high = 100 * contrast.equivalence.low, 100 * contrast.equivalence.high
    p = _p_values(contrast, cluster)
    match contrast.verdict:
        case ParityVerdict.IDENTICAL:
            return f"identical on all {plural(contrast.compared, 'question')}"
        case ParityVerdict.PARITY:
            both = "" if contrast.clusters is None else f" ({p})"
            return (
                f"parity: pass rates differ by {low:+.1f} to {high:+.1f} points, within the"
                f" margin{both}"
            )
        case ParityVerdict.DRIFT:
            return (
                f"drift: {first} alone passes {plural(contrast.first_only, 'question')},"
                f" {second} alone {contrast.second_only} ({p})"
            )
        case ParityVerdict.INCONCLUSIVE if contrast.compared == 0:
            return "inconclusive: no question was measured on both"
        case ParityVerdict.INCONCLUSIVE:
            rates = f"pass rates may differ by {low:+.1f} to {high:+.1f} points (90 % interval)"
            return _inconclusive(contrast, rates, p, cluster)


def _inconclusive(contrast: PairedComparison, rates: str, p: str, cluster: str) -> str:
    questions = plural(contrast.compared, "question")
    if contrast.clusters is None or contrast.fewest_clusters is None:
        enough = _settled(contrast.settled_by, "question", contrast.dataset_questions)
        return f"inconclusive on {questions}: {rates}; {enough}"
    if contrast.clusters < contrast.fewest_clusters:
        these = (
            f"these {contrast.clusters} {cluster}s" if contrast.clusters > 1 else f"this {cluster}"
        )
        return (
            f"inconclusive: {questions} about {these} alone, where {rates} ({p}); a verdict needs"
            f" {contrast.fewest_clusters} {cluster}s"
            + _limit(contrast.fewest_clusters, contrast.dataset_clusters)
        )
    enough = _settled(contrast.settled_by_clusters, cluster, contrast.dataset_clusters)
    clusters = plural(contrast.clusters, cluster)
    return f"inconclusive on {questions} of {clusters}: {rates} ({p}); {enough}"


def _settled(enough: int | None, noun: str, available: int | None) -> str:
    if enough is None:
        return f"no practical number of {noun}s would settle it"
    return f"about {plural(enough, noun, spec=',')} would settle it{_limit(enough, available)}"


def _limit(needed: int, available: int | None) -> str:
    """Say how many the dataset has, if these are too few."""
    if available is None or available >= needed:
        return ""
    return f", but the dataset has only {available:,}"


def _p_values(contrast: PairedComparison, cluster: str) -> str:
    """The p that decides, after Holm; with clusters also that of independent questions."""
    if contrast.clusters is None:
        return f"p {contrast.holm_p:.2g}"
    return f"p {contrast.holm_p:.2g} by {cluster}, McNemar's {contrast.mid_p:.2g} by question"


def _deciding_p(contrast: PairedComparison) -> float:
    return contrast.mid_p if contrast.sign_flip_p is None else contrast.sign_flip_p


def show_question(
    one: LoadedRun, other: LoadedRun, pair: tuple[QuestionResult, QuestionResult]
) -> None:
    """Print how two runs answered a question, side by side, to standard output."""
    console = SafeConsole()
    ours, theirs = pair
    divergence = first_difference(ours, theirs)
    if not (ours.verdict.measured and theirs.verdict.measured):
        summary = "not compared, because it was not measured in both runs"
    elif divergence is None:
        summary = "no difference"
    else:
        summary = f"first difference at {divergence.stage}: {divergence.detail}"
    console.print(line(f"{ours.id}: {ours.question}", "bold"))
    console.print(line(summary, "green" if divergence is None else "red"))
    labels, legend = _labels([(r.name, r.summary.sdk, r.summary.run_id) for r in (one, other)])
    if legend:
        console.print(line(legend, "dim"))
    names = (labels.get(run.name, run.name) for run in (one, other))
    table = wrapped_table([line(heading) for heading in ("", *names)])
    for name, left, right in _rows(ours, theirs):
        style = "" if left == right else "red"
        table.add_row(line(name, "bold"), line(left, style), line(right, style))
    console.print(table)
    for change in _prompt_difference(ours, theirs):
        console.print(line(change, {"+": "green", "-": "red"}.get(change[:1], "dim")))


def _rows(one: QuestionResult, other: QuestionResult) -> list[tuple[str, str, str]]:
    rows = [("verdict", _outcome(one), _outcome(other))]
    if one.seen and other.seen:
        rows.append(("request", one.seen.request[:12], other.seen.request[:12]))
    ranks = range(max(len(one.ranking), len(other.ranking)))
    rows += [
        (f"rank {rank + 1}", _ranked_chunk(one, rank), _ranked_chunk(other, rank)) for rank in ranks
    ]
    rows.append(("answer", one.answer or "-", other.answer or "-"))
    rows.append(("cites", _cited_paths(one), _cited_paths(other)))
    return rows


def _outcome(result: QuestionResult) -> str:
    if result.error is not None:
        return f"{result.verdict.value}: {result.error.code}: {result.error.message}"
    return f"{result.verdict.value}, score {result.score}"


def _ranked_chunk(result: QuestionResult, rank: int) -> str:
    if rank >= len(result.ranking):
        return "-"
    chunk = result.ranking[rank]
    content = (chunk.content or "")[:8]
    hit = " (holds the answer)" if result.first_hit == rank + 1 else ""
    return f"{chunk.score:.6f} {chunk.path} {content}{hit}"


def _cited_paths(result: QuestionResult) -> str:
    return ", ".join(cited.path for cited in result.citations) or "-"


def _prompt_difference(one: QuestionResult, other: QuestionResult) -> Sequence[str]:
    ours, theirs = ((r.seen.prompts if r.seen else None) for r in (one, other))
    if ours is None or theirs is None or ours == theirs:
        return []
    return list(
        unified_diff(
            _prompt_lines(ours), _prompt_lines(theirs), "prompt", "prompt", lineterm="", n=1
        )
    )


def _prompt_lines(prompts: Sequence[dict[str, Any]]) -> list[str]:
    """Flatten requests to the chat model into lines of text."""
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
    """Return a table cell or a line of text in a style."""
    return styled([(text, style)])
