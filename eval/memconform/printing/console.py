"""rich, with foreign text escaped before it is rendered: styles are ours alone."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, JustifyMethod, OverflowMethod, RenderableType
from rich.progress import Task, TextColumn
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from memconform.printing.escaping import escape_lines, printable


class SafeConsole(Console):
    """Takes every string as text: no markup in it counts, and all of it is made printable."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, soft_wrap=True)

    def render_str(
        self,
        text: str,
        *,
        style: str | Style = "",
        justify: JustifyMethod | None = None,
        overflow: OverflowMethod | None = None,
        **_: Any,  # noqa: ANN401 - what asks for markup, emoji and highlights
    ) -> Text:
        """A string that was printed, or that stands in a table's cell: its markup is text."""
        return Text(printable(text), style=style, justify=justify, overflow=overflow)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """What a renderable of rich's own makes of text that it was given as it is."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(escape_lines(segment.text), segment.style)


class SafeTextColumn(TextColumn):
    """The description of a task, which may be a name that comes from a file."""

    def __init__(self) -> None:
        super().__init__("{task.description}", markup=False)

    def render(self, task: Task) -> Text:
        return Text(printable(task.description))


def styled(parts: Iterable[tuple[str, str]]) -> Text:
    """Pieces of text, each with its style, as one line."""
    line = Text()
    for text, style in parts:
        line.append(printable(text), style)
    return line


def joined(parts: Iterable[Text], separator: str = ", ") -> Text:
    """Styled text, with a separator between its parts."""
    return Text(separator).join(parts)
