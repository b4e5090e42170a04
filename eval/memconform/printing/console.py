"""A rich console that escapes foreign text before rendering, so that only our styles apply."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, JustifyMethod, OverflowMethod, RenderableType
from rich.progress import Task, TextColumn
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from memconform.printing.escaping import escape_lines, printable


class SafeConsole(Console):
    """Console that treats every string as plain text: markup is ignored, and text is escaped."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, soft_wrap=True)

    def render_str(
        self,
        text: str,
        *,
        style: str | Style = "",
        justify: JustifyMethod | None = None,
        overflow: OverflowMethod | None = None,
        **_: Any,  # noqa: ANN401 - options for markup, emoji and highlights
    ) -> Text:
        """Render a printed string or a table cell, with its markup taken literally."""
        return Text(printable(text), style=style, justify=justify, overflow=overflow)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Escape the text that rich's own renderables pass through unchanged."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(escape_lines(segment.text), segment.style)


class SafeTextColumn(TextColumn):
    """Column for the description of a task, which may be a name from a file."""

    def __init__(self) -> None:
        super().__init__("{task.description}", markup=False)

    def render(self, task: Task) -> Text:
        return Text(printable(task.description))


def styled(parts: Iterable[tuple[str, str]]) -> Text:
    """Join pieces of text, each with its style, into one line."""
    line = Text()
    for text, style in parts:
        line.append(printable(text), style)
    return line


def joined(parts: Iterable[Text], separator: str = ", ") -> Text:
    """Join styled texts with a separator."""
    return Text(separator).join(parts)
