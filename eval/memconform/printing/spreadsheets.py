"""CSV that a spreadsheet may open: no text of a daemon, a model or a dataset runs as a formula.

Every CSV is written here. A text that a spreadsheet would execute begins with an apostrophe, which
shows it as text. Numbers are written as numbers, also negative ones.
"""

import csv
import io
import re
from collections.abc import Iterable
from typing import Final, Literal

LineEnd = Literal["\n", "\r\n"]

Number = int | float | None

_FORMULA: Final = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
"""How a text begins that a spreadsheet may execute. Some skip spaces, and take the wide forms of
the characters for them."""
_NUMBER: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_CHANGED: Final = re.compile(rf"'*(?:{_FORMULA.pattern}|\d)")
"""How a text begins that a spreadsheet may also rewrite, as a number or a date, such as 1/48 or
007; or that an apostrophe keeps from that."""


def csv_line(cells: Iterable[str | Number], line_end: LineEnd = "\n") -> str:
    """A line of CSV (RFC 4180) with its end; None is an empty cell."""
    line = io.StringIO()
    # Before 3.13 Python quotes a line end inside a cell only if it is in `lineterminator`.
    writer = csv.writer(line, lineterminator="\r\n")
    writer.writerow(guarded(cell) if isinstance(cell, str) else cell for cell in cells)
    return line.getvalue().removesuffix("\r\n") + line_end


def guarded(text: str) -> str:
    """A text as a cell that is not executed; one that is a number stays one."""
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def guarded_exactly(text: str) -> str:
    """A text as a cell that is neither executed nor rewritten; `unguarded` takes it back."""
    return f"'{text}" if _CHANGED.match(text) else text


def unguarded(cell: str) -> str:
    """The text of a cell that `guarded_exactly` wrote, whether or not the apostrophe was kept."""
    return cell[1:] if cell.startswith("'") and _CHANGED.match(cell) else cell
