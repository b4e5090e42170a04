"""A rich console that escapes foreign text before rendering, so that only our styles apply."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from rich.console import Console, ConsoleOptions, JustifyMethod, OverflowMethod, RenderableType
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from memconform.printing.escaping import escape_lines, printable
from memconform.printing.output import is_stdout_reserved


class SafeConsole(Console):
    """Console that treats every string as plain text: markup is ignored, and text is escaped."""

    def __init__(self, *, stderr: bool = False) -> None:
        # NO_COLOR: rich drops colours only, and keeps bold, dim and links.
        colors: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
        super().__init__(
            stderr=stderr or is_stdout_reserved(), highlight=False, color_system=colors
        )
        # A pipe has no width, even if FORCE_COLOR makes rich take it for a terminal.
        self.soft_wrap = not self.file.isatty()

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


def standard_error() -> SafeConsole:
    """Return a console that writes to the current standard error."""
    return SafeConsole(stderr=True)


def styled(parts: Iterable[tuple[str, str]]) -> Text:
    """Join pieces of text, each with its style, into one line."""
    line = Text()
    for text, style in parts:
        line.append(printable(text), style)
    return line


def joined(parts: Iterable[Text], separator: str = ", ") -> Text:
    """Join styled texts with a separator."""
    return Text(separator).join(parts)


def show_link(label: str, path: Path) -> None:
    """Print the path of a file to standard error; on a terminal it is a link."""
    link = (str(path), f"link {path.resolve().as_uri()}")
    standard_error().print(styled([(f"{label}: ", ""), link]), soft_wrap=True)
