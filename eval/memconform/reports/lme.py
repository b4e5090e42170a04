"""The replay on the terminal, and as the README of its folder."""

import shlex
from collections.abc import Iterator, Mapping, Sequence

from memconform.client.timings import short_latencies
from memconform.ingest.records import nothing_found
from memconform.printing.errors import render_error
from memconform.printing.escaping import Lines, escape_markdown
from memconform.printing.plurals import plural
from memconform.records import Failure
from memconform.replay.events import (
    BrainIndexed,
    PartFinished,
    PartHalted,
    PartStarted,
    QuestionAnswered,
    QuestionRetrieved,
    ReplayEvent,
    ReplayFinished,
)
from memconform.replay.plan import ReplayPlan
from memconform.replay.records import (
    LmePair,
    LmeParity,
    LmeResult,
    QuestionDivergence,
    ReplaySettings,
)
from memconform.replay.shared_brain import BrainRecord
from memconform.reports.accuracies import accuracy_cell, estimate_cell
from memconform.reports.console import null_lists, short_rankings, skipped, table_console
from memconform.reports.fitted_table import fitting_table, omission
from memconform.reports.markdown import markdown_table
from memconform.reports.parity import contrast_line
from memconform.reports.progress import RowsProgress
from memconform.reports.rates import NO_FIGURE
from memconform.stats.paired_comparison import ParityVerdict

_SHOWN = 5
"""Questions of each pair in the README; parity.json has all."""
_IMPORTANCE = ("accuracy", "recall_all", "given gold", "p50 ms", "cost $")


class LmeConsole(RowsProgress):
    """Event handler that shows the progress of a replay, with a row per SDK or control.

    All brains are filled at the same time; questions are asked of one SDK after the other.
    """

    def __init__(self, plan: ReplayPlan, *, quiet: bool = False) -> None:
        super().__init__([part.name for part in plan.parts], quiet=quiet)
        self._questions = len(plan.questions)
        self._quiet = quiet
        self._unasked: dict[str, int] = {}
        for part in plan.parts:
            if part.control is None:
                self.begin(part.name, "filling its brain")

    def handle(self, event: ReplayEvent) -> None:
        """Show an event, as far as it is of interest."""
        match event:
            case PartStarted():
                if event.resumed and not self._quiet:
                    kept = plural(event.resumed, "question")
                    self._console.print(f"  {event.name}: {kept} kept from before")
                self._unasked[event.name] = self._questions - event.resumed
            case BrainIndexed():
                self.wait(event.name)
                if not self._quiet:
                    self._console.print(f"  {event.name}: {_brain(event)}")
            case QuestionRetrieved():
                unasked = self._unasked.get(event.name, self._questions)
                self.begin(event.name, "asking", unasked)
                self.advance(event.name)
            case QuestionAnswered():
                # The first answer ends the asking.
                self.begin(event.name, "reading", self._questions)
                self.advance(event.name)
            case PartHalted():
                halted = Lines(f"{event.name}: {render_error(event.error)}")
                self._console.print(halted, style="bold red")
            case PartFinished():
                self.end(event.result.sdk, "failed" if event.result.failures else "done")


def _brain(event: BrainIndexed) -> str:
    documents = plural(event.record.documents, "document", spec=",")
    proof = event.record.proof
    if proof is not None and not proof.promised:
        return f"{documents} stored, {event.record.took_ms / 1e3:.1f} s; {proof.describe()}"
    return f"{documents} indexed and found, {event.record.took_ms / 1e3:.1f} s"


def show_lme(finished: ReplayFinished, *, quiet: bool = False) -> None:
    """Print the results and their comparison to standard error."""
    console = table_console(stderr=True)
    if not quiet:
        header, cells = replay_table(finished.results)
        table, omitted = fitting_table(
            header, cells, console.width, names=1, importance=_IMPORTANCE
        )
        console.print(table)
        if omitted:
            console.print(omission(omitted, "README.md has them"), style="dim")
    for result in finished.results:
        for failure in result.failures:
            console.print(f"{result.sdk}: not measured: {failure}", style="bold red")
        if result.short_latencies:
            fault = short_latencies(result.short_latencies)
            console.print(f"{result.sdk}: {fault}", style="bold red")
    if finished.parity is not None and not quiet:
        for pair in finished.parity.pairs:
            for text, is_good in _pair_lines(pair):
                console.print(text, style="green" if is_good else "red")
            for divergence in pair.divergences[:1]:
                console.print(f"  the first: {_divergence(divergence)}")
        console.print(f"session filter: {finished.parity.session_filter}", style="dim")
    for note in ranking_notes(finished.results):
        console.print(note, style="dim")


def ranking_notes(results: Sequence[LmeResult]) -> Iterator[str]:
    """Lines for each SDK that did not rerank, whose scores contradict its order, or found null."""
    for result in results:
        if result.skipped_stages:
            yield f"{result.sdk}: stages {skipped(result.skipped_stages, result.questions_run)}"
        if result.rising_scores:
            questions = plural(result.rising_scores, "question")
            yield (
                f"{result.sdk}: scores rise in the rankings of {questions} (core.search.order),"
                " ranked by position"
            )
        if result.short_rankings:
            yield f"{result.sdk}: {short_rankings(result.short_rankings)}"
        if result.null_lists:
            yield f"{result.sdk}: {null_lists(result.null_lists)}"
        measured = sum(question.measured for question in result.questions)
        if result.empty_rankings and result.empty_rankings == measured:
            yield f"{result.sdk}: {nothing_found(measured)}"


def lme_lines(finished: ReplayFinished) -> Iterator[str]:
    """One line an SDK: its accuracy, and the gold that it retrieved."""
    for result in finished.results:
        accuracy = accuracy_cell(result.scores.overall)
        yield (
            f"{result.sdk}: {accuracy} of {result.questions_run}"
            f" ({_recall(result)[0]} {_recall(result)[1]} of {_with_gold(result)})"
        )
    if finished.parity is not None:
        yield f"parity: {finished.parity.verdict.value}"


def _with_gold(result: LmeResult) -> int:
    """Questions whose sessions with an answer are looked for."""
    return sum(bool(row.answer_session_ids) and not row.abstention for row in result.questions)


def _recall(result: LmeResult) -> tuple[str, str]:
    """The name of recall_all at the largest k, and its value in percent."""
    names = [name for name in result.retrieval if name.startswith("recall_all@")]
    if not names:
        return "recall_all", NO_FIGURE
    name = max(names, key=lambda each: int(each.partition("@")[2]))
    return name, estimate_cell(result.retrieval[name])


def replay_table(results: Sequence[LmeResult]) -> tuple[list[str], list[list[str]]]:
    """A row an SDK: header and cells."""
    categories = list(dict.fromkeys(name for result in results for name in result.by_category))
    header = [
        *("SDK", "accuracy", "task-averaged", "abstention", "recall_all", "given gold"),
        *("exact match", "p50 ms", "calls", "cached", "cost $", *categories),
    ]
    cells = []
    for result in results:
        roles = result.cost_accounting.by_role.values()
        abstention = result.scores.abstention
        cells.append(
            [
                result.sdk,
                accuracy_cell(result.scores.overall),
                estimate_cell(result.scores.task_averaged.rate),
                accuracy_cell(abstention) if abstention.expected else NO_FIGURE,
                _recall(result)[1],
                accuracy_cell(result.correct_given_gold),
                NO_FIGURE if result.exact_match is None else f"{100 * result.exact_match:.1f}",
                NO_FIGURE if result.latency_p50_ms is None else f"{result.latency_p50_ms:.1f}",
                f"{sum(role.calls for role in roles):,}",
                f"{sum(role.cached for role in roles):,}",
                f"{result.cost_accounting.total_usd:.4f}",
                *(accuracy_cell(result.scores.by_category.get(name)) for name in categories),
            ]
        )
    return header, cells


def _pair_lines(pair: LmePair) -> Iterator[tuple[str, bool]]:
    """The verdicts on a pair, each with whether it is good."""
    good = (ParityVerdict.IDENTICAL, ParityVerdict.PARITY)
    ranked = pair.rankings
    yield (
        f"{pair.first}, {pair.second}: {ranked.equal} of {ranked.compared} rankings equal",
        ranked.equal == ranked.compared > 0,
    )
    for name, contrast in (("retrieved gold", pair.gold), ("answers", pair.answers)):
        line = contrast_line(pair.first, pair.second, contrast)
        yield f"  {name}: {line}", contrast.verdict in good


def _divergence(divergence: QuestionDivergence) -> str:
    return f"{divergence.question} differs in {divergence.stage}: {divergence.detail}"


def heuristic_notes(record: BrainRecord) -> list[str]:
    """A line for each kind of reply that could not be used: facts of sessions, their contexts."""
    return [
        *_first_of(
            record.by_heuristic,
            f"{len(record.by_heuristic)} of {plural(record.sessions, 'session')} have the facts of"
            " the heuristic, not of the extractor",
        ),
        *_first_of(
            record.without_context,
            f"{len(record.without_context)} of {plural(record.facts, 'fact')} have no context",
        ),
    ]


def _first_of(failures: Mapping[str, Failure], note: str) -> Iterator[str]:
    """The note with the first of the failures, if there are any."""
    for place, failure in list(failures.items())[:1]:
        yield f"{note}; the first: {place}: {failure.code}: {failure.message}"


def lme_readme(finished: ReplayFinished, notes: Sequence[str], spent_usd: float) -> str:
    """The summary of a replay's folder, in Markdown.

    `notes` are of the brain; `spent_usd` is what all commands with this folder have spent.
    """
    # Controls come before SDKs, which may be read otherwise.
    first = finished.results[-1]
    settings = first.settings
    unread = "the daemon's own reader" if settings.endpoint_style == "full" else "nobody"
    reader = settings.reader.model if settings.reader else unread
    judge = (
        ", ".join(model.model for model in settings.judge.models)
        if settings.judge
        else "nobody: answers are compared with the references exactly"
    )
    header, cells = replay_table(finished.results)
    about = (
        f"{plural(first.questions_run, 'question')} of the file {first.dataset_sha[:12]}…, the same"
        f" brain for every SDK ({_ingest(settings)}), top {settings.retrieval.top_k} by"
        f" {settings.retrieval.mode.value}; read by {escape_markdown(reader)}, judged by"
        f" {escape_markdown(judge)}. Rates in percent with 95 % intervals."
    )
    legend = (
        f"recall_all is that of the sessions with an answer ({_recall(first)[0]}); given gold is"
        " the accuracy where all of them were retrieved."
    )
    lines = ["# Replay of LongMemEval", "", about, "", *markdown_table(header, cells), "", legend]
    spent = f"All commands with this folder have spent ${spent_usd:.4f}."
    notes = [*ranking_notes(finished.results), *notes, spent]
    lines += ["", *(escape_markdown(note) for note in notes)]
    failures = [f"{result.sdk}: {line}" for result in finished.results for line in result.failures]
    if failures:
        lines += ["", "## Not measured", "", *(f"- {escape_markdown(each)}" for each in failures)]
    if finished.parity is not None:
        lines += ["", *_parity_section(finished.parity)]
    command = shlex.join(first.command)
    lines += ["", "## The command", "", f"    {command}", ""]
    return "\n".join(lines)


def _ingest(settings: ReplaySettings) -> str:
    return (
        f"{settings.ingest_mode}, searched by an agent"
        if settings.agentic
        else settings.ingest_mode
    )


def _parity_section(parity: LmeParity) -> list[str]:
    lines = [f"## Parity: {parity.verdict.value}", ""]
    for pair in parity.pairs:
        lines += [f"- {escape_markdown(text.strip())}" for text, _ in _pair_lines(pair)]
        shown = pair.divergences[:_SHOWN]
        lines += [f"  - {escape_markdown(_divergence(each))}" for each in shown]
        if len(pair.divergences) > len(shown):
            lines.append(f"  - and {len(pair.divergences) - len(shown)} more in parity.json")
    notes = [f"session filter: {parity.session_filter}", *parity.reasons]
    return [*lines, "", *(f"- {escape_markdown(note)}" for note in notes)]
