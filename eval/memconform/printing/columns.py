"""The columns of progress bars."""

from rich.console import RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    Task,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

from memconform.printing.escaping import printable

_WIDEST = 28
"""Columns of a description: beside one, all figures and a bar fit 80 columns."""
_ROUND = 100
"""Rates from here on have no decimals."""


def is_running(task: Task) -> bool:
    """Whether a task has begun and has not ended, completely or not."""
    return task.started and not task.finished and task.stop_time is None


def rate(task: Task) -> str:
    """Format the rate of a task, such as `12.3/s` or `4.5/min`; empty if it is not yet known."""
    speed = task.finished_speed or task.speed
    if not speed:
        return ""
    if speed < 1:
        return f"{60 * speed:.1f}/min"
    return f"{speed:,.1f}/s" if speed < _ROUND else f"{speed:,.0f}/s"


def whole() -> Column:
    """Create a table column that is never narrowed: where there is no room, the bar gives way."""
    return Column(no_wrap=True)


class Description(ProgressColumn):
    """What a task is called, which may be a name from a file."""

    def __init__(self) -> None:
        super().__init__(Column(no_wrap=True, overflow="ellipsis", max_width=_WIDEST))

    def render(self, task: Task) -> Text:
        return Text(printable(task.description))


class Bar(ProgressColumn):
    """A bar; blank for what has not begun, which rich would show as busy."""

    def __init__(self) -> None:
        super().__init__()
        self._bar = BarColumn()

    def render(self, task: Task) -> RenderableType:
        return self._bar.render(task) if task.started else ""


class Count(MofNCompleteColumn):
    """`12/300`, or `12` while nobody knows how many there are."""

    def render(self, task: Task) -> Text:
        if task.total is None:
            return Text(f"{task.completed:.0f}" if task.completed else "")
        return super().render(task)


class Rate(ProgressColumn):
    """`12.3/s`, right-aligned so that other columns keep their places."""

    def render(self, task: Task) -> Text:
        return Text(f"{rate(task):>8}", style="progress.data.speed")


class TimeElapsed(TimeElapsedColumn):
    """`0:01:23`; blank for what has not begun."""

    def render(self, task: Task) -> Text:
        return super().render(task) if task.started else Text()


class TimeLeft(TimeRemainingColumn):
    """`0:01:23 left`; blank for what has not begun, has ended or has no total."""

    def render(self, task: Task) -> Text:
        if task.total is None or not is_running(task):
            return Text()
        return super().render(task).append(" left")
