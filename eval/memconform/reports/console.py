"""A run on the terminal: progress while it lasts, a table at its end."""

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.box import SIMPLE
from rich.cells import cell_len
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from memconform.printing.console import SafeConsole, SafeTextColumn, joined, styled
from memconform.printing.escaping import Lines
from memconform.reports.digest import failed_lines, slowest_lines
from memconform.runs.events import (
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

_VERDICT_STYLE = {
    QuestionStatus.CORRECT: "green",
    QuestionStatus.INCORRECT: "red",
    QuestionStatus.ABSTAINED: "yellow",
}


def standard_error() -> SafeConsole:
    return SafeConsole(stderr=True)


def progress_bars(console: SafeConsole, *, quiet: bool) -> Progress:
    """Bars that go when they are done; none where nobody looks at a terminal."""
    return Progress(
        SafeTextColumn(),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=quiet or not console.is_terminal,
    )


class ProgressReport:
    """Bars on standard error, for as long as it is entered."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._console = standard_error()
        self._progress = progress_bars(self._console, quiet=quiet)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._progress.stop()


class ConsoleReport(ProgressReport):
    """Listens to one run's events; writes to standard error, where a report is no data.

    A quiet one still says what went wrong.
    """

    def __init__(self, *, quiet: bool = False, brief: bool = False) -> None:
        """`brief` leaves the figures out, for those who show them side by side."""
        super().__init__(quiet=quiet)
        self._quiet = quiet
        self._brief = brief
        self._halted = self._interrupted = False
        self._task = self._progress.add_task("starting", total=None)

    def handle(self, event: Event) -> None:
        match event:
            case RunHalted():
                self._halted = True
                self._interrupted = event.error.code == "interrupted"
                self._progress.stop()
                self._say(event.error.render(), "red")
            case RunFinished():
                self._progress.stop()
                if self._interrupted:
                    resumed = f"--resume {event.summary.run_id}"
                    self._say(f"to continue, repeat the command with {resumed}", "yellow")
                if not self._quiet:
                    self._show(event.summary, event.highlights)
                incident = event.summary.incident
                for reason in event.summary.reasons:
                    # What halted the run was said when it happened, unless that was another run.
                    said = self._halted and incident is not None
                    if not (said and incident and reason.startswith(incident.code)):
                        self._say(reason, "yellow")
            case _ if not self._quiet:
                self._follow(event)

    def _say(self, text: str, style: str = "") -> None:
        self._console.print(text, style=style)

    def _follow(self, event: Event) -> None:
        match event:
            case RunStarted():
                self._say(
                    f"{event.sdk} {event.scenario}, mode {event.mode}, {event.questions} questions,"
                    f" run {event.run_id}",
                    "bold",
                )
                self._progress.update(self._task, description=event.sdk, total=event.questions)
            case Notice():
                self._say(f"  {event.message}")
            case DaemonReady():
                took = "" if event.ready_ms is None else f" after {event.ready_ms:.0f} ms"
                self._say(f"  daemon ready{took} on {event.base_url}")
            case BrainSeeded():
                seeded = event.seeded
                self._say(
                    f"  brain seeded: {seeded.documents} documents, {seeded.chunks} chunks,"
                    f" {seeded.vectors} vectors in {seeded.took_ms:.0f} ms"
                )
                if seeded.proof is not None:
                    self._say(f"  {seeded.proof.describe()}")
            case QuestionFinished():
                self._progress.advance(self._task)

    def _show(self, summary: RunSummary, highlights: Highlights) -> None:
        if not self._brief:
            table = Table(show_header=False)
            table.add_column(style="bold")
            table.add_column()
            for name, value in _rows(summary):
                table.add_row(name, value)
            self._console.print(table)
        for title, lines in (
            ("failed questions", failed_lines(highlights)),
            ("slowest questions", [] if self._brief else slowest_lines(highlights)),
        ):
            if lines:
                self._say(title, "bold")
                for line in lines:
                    self._say(Lines(f"  {line}"))


def verdict_counts(summary: RunSummary) -> Text:
    """How many questions ended how, each verdict in its colour."""
    counts = [
        styled([(f"{count} {verdict.value}", _VERDICT_STYLE.get(verdict, "magenta"))])
        for verdict, count in summary.counts.items()
        if count
    ]
    return joined(counts) if counts else Text("none")


def _rows(summary: RunSummary) -> list[tuple[str, str | Text]]:
    low, high = summary.pass_rate_interval
    rows: list[tuple[str, str | Text]] = [("verdicts", verdict_counts(summary))]
    missing = sum(n for v, n in summary.counts.items() if v.expected and not v.measured)
    if summary.pass_rate is not None and missing:
        most = (summary.passed + missing) / summary.total
        open_rate = f"{summary.pass_rate:.3f} to {most:.3f}: {missing} questions were not measured"
        rows.append(("pass rate", open_rate))
    elif summary.pass_rate is not None:
        rate = f"{summary.pass_rate:.3f}  (95 % interval {low:.3f} to {high:.3f})"
        rows.append(("pass rate", rate))
    if summary.served_modes:
        served = ", ".join(f"{count} {mode}" for mode, count in summary.served_modes.items())
        rows.append(("served", served))
    if (seen := summary.verification) is not None:
        rows.append(("index", verification_line(seen)))
    if summary.unstable:
        rows.append(("unstable", f"{summary.unstable} questions"))
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
            ("daemon", f"{summary.daemon.rss_peak_bytes / 2**20:.0f} MiB at most, {cpu:.2f} s CPU")
        )
    return rows


def verification_line(seen: VerificationRecord) -> str:
    """How often the index was seen to be whole while it was asked."""
    if not seen.reproof:
        return f"counts compared {seen.verifications} times; not proven again (--no-reproof)"
    parts = [f"proven again {seen.verifications} times"]
    if seen.repeated:
        parts.append(
            f"{seen.repeated} retrievals repeated, {seen.retracted} of them came out otherwise"
        )
    if seen.invalidations:
        parts.append(f"in doubt {seen.invalidations} times")
    return ", ".join(parts)


def _milliseconds(values: QuantileSummary) -> str:
    return f"p50 {values.p50:.1f}  p95 {values.p95:.1f}  p99 {values.p99:.1f} ms"


_GAP = 2
"""Columns between two cells."""


def fitting_tables(
    header: Sequence[str], rows: Sequence[Sequence[str]], width: int, *, names: int = 2
) -> list[Table]:
    """A table, in several parts where it is too wide: no figure is ever cut.

    Each part begins with the first `names` columns, which tell its rows apart; these alone are
    folded where even they leave no room.
    """
    widths = [max(cell_len(row[place]) for row in (header, *rows)) for place in range(len(header))]
    room = width - sum(each + _GAP for each in widths[:names]) - 1
    parts: list[list[int]] = [[]]
    used = 0
    for place in range(names, len(header)):
        needed = widths[place] + _GAP
        if parts[-1] and used + needed > room:
            parts.append([])
            used = 0
        parts[-1].append(place)
        used += needed
    return [_part(header, rows, [*range(names), *part], names) for part in parts]


def _part(
    header: Sequence[str], rows: Sequence[Sequence[str]], places: Sequence[int], names: int
) -> Table:
    table = Table(box=SIMPLE, padding=(0, 1, 0, 0))
    for place in places:
        figure = place >= names
        table.add_column(
            header[place],
            justify="right" if figure else "left",
            no_wrap=figure,
            overflow="fold",
        )
    for row in rows:
        table.add_row(*(row[place] for place in places))
    return table
