"""Write the tables of SQLite's tokenizer `unicode61` for the daemons, as SQLite itself has them.

    python scripts/unicode61.py FILE...

Of the lines that hold for a code point, the last one counts; one without any separates tokens. In hexadecimal:

    FROM TO             these code points are part of a token, as they are
    FROM TO STEP ADD    every STEP-th of them is, as itself plus ADD
    FROM TO -           these leave nothing, and separate nothing
"""

import sqlite3
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path


def folds() -> Iterator[tuple[int, int | None]]:
    """Yield each code point that separates nothing, and what it becomes; None for nothing."""
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE texts USING fts5 (text, tokenize = 'unicode61')")
    database.execute("CREATE VIRTUAL TABLE tokens USING fts5vocab (texts, 'instance')")
    points = [point for point in range(1, 0x110000) if not 0xD800 <= point < 0xE000]
    rows = ((point, f"x{chr(point)}x") for point in points)
    database.executemany("INSERT INTO texts (rowid, text) VALUES (?, ?)", rows)
    # Of a text in which the code point separates, the tokens are x and x.
    for point, token in database.execute("SELECT doc, term FROM tokens WHERE term != 'x' ORDER BY doc"):
        yield point, ord(token[1]) if len(token) == 3 else None


def ranges(points: Iterable[int], *, steps: tuple[int, ...] = (1,)) -> Iterator[tuple[int, int, int]]:
    """Join code points into runs: the first, the last, and the step between two."""
    first = last = step = 0
    for point in points:
        if first and point - last in ((step,) if step else steps):
            last, step = point, point - last
            continue
        if first:
            yield first, last, step or 1
        first = last = point
        step = 0
    yield first, last, step or 1


def table() -> str:
    """The lines of the table."""
    becomes = dict(folds())
    lines = [f"{first:x} {last:x}" for first, last, _ in ranges(becomes)]
    changes: dict[int, list[int]] = {}
    for point, folded in becomes.items():
        if folded not in (None, point):
            changes.setdefault(folded - point, []).append(point)
    lines += [
        f"{first:x} {last:x} {step} {change:x}"
        for change, points in changes.items()
        for first, last, step in ranges(points, steps=(1, 2))
    ]
    nothing = [point for point, folded in becomes.items() if folded is None]
    lines += [f"{first:x} {last:x} -" for first, last, _ in ranges(nothing)]
    return "\n".join(lines) + "\n"


def main() -> None:
    for name in sys.argv[1:]:
        Path(name).write_text(table())


if __name__ == "__main__":
    main()
