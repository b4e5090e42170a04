"""Write what SQLite's tokenizer `porter unicode61` does, as SQLite itself says it.

    python scripts/tokenizer.py

Into each reference daemon the table of its code points, and into sdks/vectors tokens.json. Of the
lines of the table that hold for a code point, the last one counts; one without any separates
tokens. In hexadecimal:

    FROM TO             these code points are part of a token, as they are
    FROM TO STEP ADD    every STEP-th of them is, as itself plus ADD
    FROM TO -           these leave nothing, and separate nothing
"""

import json
import sqlite3
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

_SDKS = Path(__file__).resolve().parents[1] / "sdks"
TABLES = [
    _SDKS / "go" / "internal" / "text" / "unicode61.txt",
    _SDKS / "ts" / "src" / "text" / "unicode61.txt",
    _SDKS / "py" / "src" / "memoryd" / "text" / "unicode61.txt",
]
VECTORS = _SDKS / "vectors" / "tokens.json"
_POINTS = [point for point in range(1, 0x110000) if not 0xD800 <= point < 0xE000]
_RULE = (
    "What SQLite's FTS5 finds in the text in NFKC with tokenize = 'porter unicode61', in order. "
    "Made by scripts/tokenizer.py, with all suffixes of Porter's algorithm and all code points at "
    "which the tokenizer's tables change."
)
_SEPARATOR = ",\n  "
_STEMS = " b be tr cab oper yell syzyg trouble é hopp fizz ag abl siz yt"
_SUFFIXES = (
    "s es ies sses ss ed eed ing ated bled ized ational tional enci anci izer logi bli alli entli "
    "eli ousli ization ation ator alism iveness fulness ousness aliti iviti biliti icate ative "
    "alize iciti ical ful ness al ance ence er ic able ible ant ement ment ent ion sion tion ou "
    "ism ate iti ous ive ize e y ll fulli"
)


def folds() -> Iterator[tuple[int, int | None]]:
    """Yield each code point that separates nothing, and what it becomes; None for nothing."""
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE texts USING fts5 (text, tokenize = 'unicode61')")
    database.execute("CREATE VIRTUAL TABLE tokens USING fts5vocab (texts, 'instance')")
    rows = ((point, f"x{chr(point)}x") for point in _POINTS)
    database.executemany("INSERT INTO texts (rowid, text) VALUES (?, ?)", rows)
    # Of a text in which the code point separates, the tokens are x and x.
    found = database.execute("SELECT doc, term FROM tokens WHERE term != 'x' ORDER BY doc")
    for point, token in found:
        yield point, ord(token[1]) if len(token) == 3 else None


def ranges(
    points: Iterable[int], *, steps: tuple[int, ...] = (1,)
) -> Iterator[tuple[int, int, int]]:
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


def tokens(texts: Sequence[str]) -> list[list[str]]:
    """The tokens of each text, in their order."""
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE texts USING fts5 (text, tokenize = 'porter unicode61')")
    database.execute("CREATE VIRTUAL TABLE tokens USING fts5vocab (texts, 'instance')")
    rows = ((number, unicodedata.normalize("NFKC", text)) for number, text in enumerate(texts, 1))
    database.executemany("INSERT INTO texts (rowid, text) VALUES (?, ?)", rows)
    found: list[list[str]] = [[] for _ in texts]
    for number, token in database.execute("SELECT doc, term FROM tokens ORDER BY doc, offset"):
        found[number - 1].append(token)
    return found


def texts(lines: str) -> list[str]:
    """Texts with all suffixes, and with the ends of every line of the table."""
    words = [" ".join(stem + suffix for suffix in _SUFFIXES.split()) for stem in _STEMS.split(" ")]
    words += [
        " ".join("a" * length + suffix for suffix in ("ing", "s", "ational"))
        for length in (57, 61, 62, 70)
    ]
    points: set[int] = set()
    for line in lines.splitlines():
        first, last = (int(number, 16) for number in line.split()[:2])
        points |= {first - 1, first, last, last + 1}
    valid = set(_POINTS)
    known = [chr(point) for point in sorted(points) if point in valid]
    parts = (known[start : start + 40] for start in range(0, len(known), 40))
    return words + [" ".join(f"x{point}x" for point in part) for part in parts]


def vectors(lines: str) -> str:
    """The texts with their tokens, as JSON."""
    words = texts(lines)
    cases = (
        json.dumps({"text": text, "tokens": found})
        for text, found in zip(words, tokens(words), strict=True)
    )
    return f'{{\n "rule": {json.dumps(_RULE)},\n "cases": [\n  {_SEPARATOR.join(cases)}\n ]\n}}\n'


def main() -> None:
    lines = table()
    for path in TABLES:
        path.write_text(lines, encoding="utf-8")
    VECTORS.write_text(vectors(lines))


if __name__ == "__main__":
    main()
