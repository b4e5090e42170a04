"""Tables that fit into a given width: columns are omitted whole, and no word or figure is cut."""

from collections.abc import Iterable, Sequence

from rich.box import SIMPLE
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

_GAP = 2
"""Columns between two cells."""
_NAME_SHARE = 4
"""A column of names wider than this part of the table's width is wrapped between words."""


def fitting_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str | Text]],
    width: int,
    *,
    names: int = 2,
    importance: Sequence[str] = (),
) -> tuple[Table, list[str]]:
    """Build a table of at most `width` columns, and list the figures for which it has no room.

    The first `names` columns identify the rows and always stay; they are wrapped between words. The
    other columns are figures. If they do not all fit, the least important are omitted, until the
    rest fits; one always stays.

    Args:
        header: names of the columns.
        rows: cells by row, as many as the header has.
        width: of the terminal, in characters.
        names: number of columns that identify a row.
        importance: figures from most to least important, of which the first mention counts; others
            follow in the order of the header.
    """
    figures = list(range(names, len(header)))
    lines = [header, *([str(cell) for cell in row] for row in rows)]
    widths = [max(cell_len(line[column]) for line in lines) for column in range(len(header))]
    words = [
        max((cell_len(word) for line in lines for word in line[column].split()), default=0)
        for column in range(names)
    ]
    ranks = {name: rank for rank, name in enumerate(dict.fromkeys(importance))}
    by_importance = sorted(figures, key=lambda c: (ranks.get(header[c], len(ranks)), c))
    least = widths[by_importance[0]] + _GAP if figures else 0
    for share in (width // _NAME_SHARE, 0):
        for column, longest in enumerate(words):
            widths[column] = min(widths[column], max(longest, share))
        # The first column of a table has a gap at its left, too.
        room = width - _GAP // 2 - sum(widths[column] + _GAP for column in range(names))
        if room >= least:
            break
    shown: set[int] = set()
    for column in by_importance:
        room -= widths[column] + _GAP
        if room < 0 and shown:
            break
        shown.add(column)
    table = Table(box=SIMPLE, padding=(0, 1, 0, 0))
    columns = [column for column in range(len(header)) if column < names or column in shown]
    for column in columns:
        is_figure = column >= names
        table.add_column(
            header[column],
            justify="right" if is_figure else "left",
            no_wrap=is_figure,
            overflow="fold",
            min_width=widths[column],
        )
    for row in rows:
        table.add_row(*(row[column] for column in columns))
    return table, [header[column] for column in figures if column not in shown]


def wrapped_table(header: Iterable[str | Text]) -> Table:
    """Build a table of texts, whose columns share the width and wrap."""
    table = Table(box=SIMPLE, padding=(0, 1, 0, 0))
    for name in header:
        table.add_column(name, overflow="fold")
    return table


def omission(columns: Sequence[str], instead: str) -> str:
    """Format `not shown, for lack of room: <columns>; <instead>`; empty without columns."""
    if not columns:
        return ""
    return f"not shown, for lack of room: {', '.join(dict.fromkeys(columns))}; {instead}"
