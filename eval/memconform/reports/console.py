"""Console report of a run: progress while it lasts, a table at its end."""

import os
import shlex
from collections.abc import Mapping, Sequence

from rich.table import Table
from rich.text import Text

from memconform.printing.commands import resume_command
from memconform.printing.console import SafeConsole, joined, styled
from memconform.printing.errors import render_error
from memconform.printing.escaping import Lines
from memconform.printing.plurals import plural
from memconform.reports.digest import failed_lines, slowest_lines
from memconform.reports.progress import RowsProgress
from memconform.reports.rates import pass_rate_text
from memconform.reports.run_judges import judging_lines
from memconform.runs.events import (
    AskingStarted,
    BrainSeeded,
    DaemonReady,
    Event,
    Notice,
    QuestionFinished,
    RunFinished,
    RunHalted,
    RunStarted,
)
from memconform.runs.highlights import Highlights
from memconform.runs.results import RunSummary, VerificationRecord
from memconform.scoring.statuses import QuestionStatus
from memconform.stats.quantiles import QuantileSummary

_WIDE = 160
"""Columns of a table that is written to a file or a pipe."""

_BRIEFLY = 3
"""Failed questions of each of several SDKs that are shown: their heads would scroll away."""

_VERDICT_STYLE = {
    QuestionStatus.CORRECT: "green",
    QuestionStatus.INCORRECT: "red",
    QuestionStatus.ABSTAINED: "yellow",
}


def table_console(*, stderr: bool) -> SafeConsole:
    """Return a console for tables, wide enough for most where nobody says how wide it is.

    rich assumes 80 columns for a file or a pipe, unless COLUMNS says otherwise.
    """
    console = SafeConsole(stderr=stderr)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _WIDE
    return console


class ConsoleReport(RowsProgress):
    """Event handler that reports runs on standard error, away from the data on standard output.

    It has a row of progress for each SDK. A quiet report still shows what went wrong.
    """

    def __init__(self, sdks: Sequence[str], *, quiet: bool = False) -> None:
        """Create a report of the runs of some SDKs; figures of several are the caller's."""
        super().__init__(sdks, quiet=quiet)
        self._quiet = quiet
        self._brief = len(sdks) > 1
        self._sdk = ""
        self._halted = self._interrupted = self._has_asked = False

    def handle(self, event: Event) -> None:
        """Show an event, as far as it is of interest."""
        match event:
            case RunStarted():
                self._sdk = event.sdk
                self._halted = self._interrupted = self._has_asked = False
                self.begin(event.sdk, "starting")
                questions = plural(event.questions, "question")
                if not self._quiet:
                    self._print(
                        f"{event.sdk} {event.scenario}, mode {event.mode}, {questions},"
                        f" run {event.run_id}",
                        "bold",
                    )
            case RunHalted():
                self._halted = True
                self._interrupted = event.error.code == "interrupted"
                self._print(render_error(event.error), "red")
            case RunFinished():
                self.end(event.summary.sdk, pass_rate_text(event.summary, brief=True))
                if self._halted and (self._interrupted or self._has_asked):
                    self._print(f"to continue: {self._resume(event.summary)}", "yellow")
                if not self._quiet:
                    self._show(event.summary, event.highlights)
                incident = event.summary.incident
                for reason in event.summary.reasons:
                    if incident is None or not reason.startswith(incident.code):
                        self._print(reason, "yellow")
                    elif not self._halted:
                        # It happened in an earlier run, and is shown here alone.
                        self._print(f"{reason}\n  try: {incident.hint}", "yellow")
            case _:
                self._has_asked = self._has_asked or isinstance(event, AskingStarted)
                if not self._quiet:
                    self._follow(event)

    def _resume(self, summary: RunSummary) -> str:
        """What to type to continue a run that ended early."""
        if self._brief:
            # The command began several runs, and one is resumed at a time.
            reference = summary.provenance.sdk_reference or summary.sdk
            sdk = shlex.join(["--sdk", reference, "--resume", summary.run_id])
            return f"repeat the command with {sdk} in place of its --sdk"
        return resume_command(summary.provenance.command, summary.run_id)

    def _print(self, text: str, style: str = "") -> None:
        # A style given to `print` would apply to the bars below it, too.
        self._console.print(styled([(text, style)]))

    def _follow(self, event: Event) -> None:
        match event:
            case Notice():
                self.begin(self._sdk, "building")
                self._print(f"  {event.message}")
            case DaemonReady():
                self.begin(self._sdk, "seeding")
                delay = "" if event.ready_ms is None else f" after {event.ready_ms:.0f} ms"
                self._print(f"  daemon ready{delay} on {event.base_url}")
            case BrainSeeded():
                seeded = event.seeded
                counts = [plural(seeded.documents, "document")]
                for count, noun in ((seeded.chunks, "chunk"), (seeded.vectors, "vector")):
                    counts.append(f"{noun}s unknown" if count is None else plural(count, noun))
                self._print(f"  brain seeded: {', '.join(counts)} in {seeded.took_ms:.0f} ms")
                if seeded.proof is not None:
                    self._print(f"  {seeded.proof.describe()}")
            case AskingStarted():
                self.begin(self._sdk, "asking", event.questions)
            case QuestionFinished():
                self.advance(self._sdk)

    def _show(self, summary: RunSummary, highlights: Highlights) -> None:
        if not self._brief:
            table = Table(show_header=False)
            table.add_column(style="bold")
            table.add_column()
            for name, value in _rows(summary):
                table.add_row(name, value)
            self._console.print(table)
        for title, lines in (
            ("judges", [] if summary.judging is None else list(judging_lines(summary.judging))),
            ("failed questions", failed_lines(highlights, _BRIEFLY if self._brief else None)),
            ("slowest questions", [] if self._brief else slowest_lines(highlights)),
        ):
            if lines:
                self._print(title, "bold")
                for line in lines:
                    # Several lines end with a command, which is not wrapped.
                    self._console.print(Lines(f"  {line}"), soft_wrap="\n" in line or None)


def verdict_counts(summary: RunSummary) -> Text:
    """Format the number of questions with each verdict, in the verdict's colour."""
    counts = [
        styled([(f"{count} {verdict.value}", _VERDICT_STYLE.get(verdict, "magenta"))])
        for verdict, count in summary.counts.items()
        if count
    ]
    return joined(counts) if counts else Text("none")


def _rows(summary: RunSummary) -> list[tuple[str, str | Text]]:
    rows: list[tuple[str, str | Text]] = [("verdicts", verdict_counts(summary))]
    rows.append(("pass rate (95 %)", pass_rate_text(summary)))
    if summary.served_modes:
        served = ", ".join(f"{count} {mode}" for mode, count in summary.served_modes.items())
        rows.append(("served", served))
    if summary.skipped_stages:
        searches = sum(summary.served_modes.values())
        rows.append(("stages", skipped(summary.skipped_stages, searches)))
    if summary.rising_scores:
        rankings = plural(summary.rising_scores, "ranking")
        rows.append(("violation", f"scores rise in {rankings} (core.search.order)"))
    if summary.null_lists:
        rows.append(("violation", null_lists(summary.null_lists)))
    if (record := summary.verification) is not None:
        rows.append(("index", verification_line(record)))
    if summary.unstable:
        rows.append(("unstable", plural(summary.unstable, "question")))
    latency = summary.latency
    rows += [
        (name, _milliseconds(values))
        for name, values in (
            ("latency", latency.done),
            ("first event", latency.first_event),
            ("first delta", latency.first_delta),
        )
        if values is not None
    ]
    if summary.daemon.rss_peak_bytes is not None:
        cpu = summary.daemon.cpu_seconds or 0.0
        rows.append(
            ("daemon", f"{summary.daemon.rss_peak_bytes / 2**20:.0f} MiB peak, {cpu:.2f} s CPU")
        )
    return rows


def short_rankings(count: int) -> str:
    """Describe rankings that a daemon with a dialect has shortened."""
    return f"fewer hits than there are in {plural(count, 'ranking')}, ranked as it returned them"


def skipped(reasons: Mapping[str, int], total: int) -> str:
    """Describe why so many of `total` questions or queries lacked a stage of their mode."""
    counted = ", ".join(f"{reason} {count}" for reason, count in reasons.items())
    return f"skipped on {sum(reasons.values())} of {total} questions: {counted}"


def null_lists(count: int) -> str:
    """Describe empty rankings for which a daemon sent null, which count as empty."""
    return f"chunks is null, not [], in {plural(count, 'empty ranking')} (core.search.shape)"


def verification_line(record: VerificationRecord) -> str:
    """Describe how often the index was verified while questions were asked."""
    if not record.reproof:
        times = plural(record.verifications, "time")
        return f"counts compared {times}; not re-verified (--no-reverify, or a memory system)"
    parts = [f"re-verified {plural(record.verifications, 'time')}"]
    if record.repeated:
        retrievals = plural(record.repeated, "retrieval")
        parts.append(f"{retrievals} repeated, {record.retracted or 'none'} differed")
    if record.invalidations:
        parts.append(f"index invalidated {plural(record.invalidations, 'time')}")
    return "; ".join(parts)


def _milliseconds(values: QuantileSummary) -> str:
    return f"p50 {values.p50:.1f}  p95 {values.p95:.1f}  p99 {values.p99:.1f} ms"
