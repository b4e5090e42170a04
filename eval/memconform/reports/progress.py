"""Progress of what takes long: bars on a terminal, a line every ten seconds elsewhere."""

import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.cells import cell_len, set_cell_size
from rich.progress import Progress, ProgressColumn, TaskID

from memconform.printing.columns import Bar, Count, Description, Rate, TimeElapsed, TimeLeft, whole
from memconform.printing.console import SafeConsole, standard_error
from memconform.reports.plain_progress import PlainProgress

_RATE_PERIOD_S = 300.0
"""Rates are those of this time: a question that a language model answers may take a minute."""

_WIDEST_NAME = 16
"""Columns of an SDK's name, so that what is being done with it has its place."""


def is_live(console: SafeConsole) -> bool:
    """Whether a display that overwrites itself can be shown: not in a pipe, nor a dumb terminal.

    With FORCE_COLOR rich takes a pipe for a terminal.
    """
    return console.is_interactive and console.file.isatty()


def progress_bars(console: SafeConsole, *figures: ProgressColumn, quiet: bool = False) -> Progress:
    """Create progress bars that disappear when done; disabled if `quiet` or not on a terminal.

    `figures` replace the count and its rate.
    """
    return Progress(
        Description(),
        Bar(),
        *(figures or (Count(table_column=whole()), Rate(whole()))),
        TimeElapsed(whole()),
        TimeLeft(table_column=whole()),
        console=console,
        transient=True,
        disable=quiet or not is_live(console),
        speed_estimate_period=_RATE_PERIOD_S,
        # Standard output goes through the display only if that is on the same terminal.
        redirect_stdout=sys.stdout.isatty(),
    )


class ProgressReport:
    """Context manager that shows progress on standard error: bars, or lines without a terminal."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._console = standard_error()
        self._progress = progress_bars(self._console, quiet=quiet)
        has_lines = not quiet and not is_live(self._console)
        self._lines = PlainProgress(self._console, self._progress) if has_lines else None

    def __enter__(self) -> Self:
        self._progress.start()
        if self._lines is not None:
            self._lines.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop()

    def _stop(self) -> None:
        """Stop showing progress."""
        if self._lines is not None:
            self._lines.stop()
        self._progress.stop()


class StepProgress(ProgressReport):
    """Progress of one step; `advance` may be called from any thread."""

    def __init__(self, name: str, total: int | None = None, *, quiet: bool = False) -> None:
        super().__init__(quiet=quiet)
        self._task = self._progress.add_task(name, total=total)

    def advance(self, *_: object) -> None:
        """Count a piece of the work, whatever it is."""
        self._progress.advance(self._task)


class RecordProgress(StepProgress):
    """Event handler that counts the events that are records of one kind."""

    def __init__(self, name: str, total: int, record: type, *, quiet: bool = False) -> None:
        super().__init__(name, total, quiet=quiet)
        self._record = record

    def handle(self, event: object) -> None:
        """Advance the progress bar."""
        if isinstance(event, self._record):
            self.advance()


class RowsProgress(ProgressReport):
    """A row per SDK or system, with what is being done with it and how far that is.

    They are measured one after the other, so that none disturbs another's latencies.
    """

    def __init__(self, names: Sequence[str], *, quiet: bool = False) -> None:
        super().__init__(quiet=quiet)
        self._width = min(max(map(cell_len, names), default=0), _WIDEST_NAME)
        self._states = dict.fromkeys(names, "waiting")
        self._rows: dict[str, TaskID] = {
            name: self._progress.add_task(self._described(name), total=None, start=False)
            for name in names
        }

    def begin(self, name: str, state: str, total: int | None = None) -> None:
        """Begin a stage of a row, unless it is in that stage already; its clock starts again."""
        if self._states[name] != state:
            self._states[name] = state
            self._progress.reset(self._rows[name], total=total, description=self._described(name))

    def wait(self, name: str) -> None:
        """Let a row wait for its next stage."""
        self._states[name] = "waiting"
        self._progress.reset(self._rows[name], start=False, description=self._described(name))

    def tell(self, name: str, state: str) -> None:
        """Replace what a row says, and leave its clock and count."""
        self._states[name] = state
        self._progress.update(self._rows[name], description=self._described(name))

    def advance(self, name: str) -> None:
        """Count a piece of a row's work."""
        self._progress.advance(self._rows[name])

    def end(self, name: str, state: str) -> None:
        """End a row, with its result."""
        self.tell(name, state)
        self._progress.stop_task(self._rows[name])

    def _described(self, name: str) -> str:
        cut = cell_len(name) > self._width
        shown = (
            f"{set_cell_size(name, self._width - 1)}…" if cut else set_cell_size(name, self._width)
        )
        return f"{shown}  {self._states[name]}"
