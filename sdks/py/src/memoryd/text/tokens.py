"""The tokens of SQLite's `porter unicode61`, in which bm25 counts."""

import sys
from functools import lru_cache
from importlib import resources

import numpy as np

from memoryd.text.porter import stem
from memoryd.text.terms import nfkc

_SEPARATES, _NOTHING = -1, 0

_CACHED_LENGTH = 64
"""Characters of the longest word whose stem is cached; a word may be as long as a document."""


class _Folds(dict[int, str | None]):
    """What each code point becomes, for `str.translate`; found when it is first needed."""

    def __init__(self) -> None:
        super().__init__()
        # scripts/tokenizer.py writes the table, and says what its lines mean.
        table = resources.files("memoryd.text").joinpath("unicode61.txt").read_text("ascii")
        points = np.arange(sys.maxunicode + 1, dtype=np.int32)
        self._folded = np.full_like(points, _SEPARATES)
        for line in table.splitlines():
            first, last, *change = line.split()
            step, add = (int(number, 16) for number in change) if len(change) == 2 else (1, 0)
            span = slice(int(first, 16), int(last, 16) + 1, step)
            self._folded[span] = _NOTHING if change == ["-"] else points[span] + add

    def __missing__(self, point: int) -> str | None:
        folded = int(self._folded[point])
        becomes = " " if folded == _SEPARATES else chr(folded) if folded != _NOTHING else None
        self[point] = becomes
        return becomes


_FOLDS = _Folds()


def tokens(text: str) -> list[bytes]:
    """The tokens of a text in NFKC, in UTF-8: a stem may end within a character."""
    return [
        _cached_stem(word) if len(word) <= _CACHED_LENGTH else stem(word.encode())
        for word in nfkc(text).translate(_FOLDS).split()
    ]


@lru_cache(maxsize=1 << 16)
def _cached_stem(word: str) -> bytes:
    return stem(word.encode())
