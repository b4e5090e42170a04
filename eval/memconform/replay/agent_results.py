"""How an agent is shown what a search found: short, under a budget, and without ids.

LongMemEval's ids name the sessions that hold an answer (`answer_…`), and paths contain them. An
agent that saw them could tell the answer's sessions from the others without reading; sessions are
therefore numbered in the order in which they are first found.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet

from memconform.contract.terms import terms
from memconform.replay.hits import Hit
from memconform.upstream.extractive import STOP_WORDS

_HIT_CHARACTERS = 1_500
"""A chunk may be a whole session, of 10,000 characters and more."""
_RESULT_CHARACTERS = 15_000
"""Length of one search result: seven of them and the question fit into 32,000 tokens."""
_LEAD = 200
"""Characters shown before the first word of an excerpt that was searched for."""
_WORD = re.compile(r"[^\W_]{2,}")


def content_words(*texts: str) -> frozenset[str]:
    """The terms of texts without stop words."""
    return frozenset(term for text in texts for term in terms(text)) - STOP_WORDS


def result_text(hits: Sequence[Hit], numbers: dict[str, int], words: AbstractSet[str]) -> str:
    """The hits of one search, from the first, each below a line with its rank, date and session.

    Args:
        hits: in the order of their ranks.
        numbers: of the sessions found before; sessions found for the first time are added.
        words: by which the part of a long text is chosen that is shown.
    """
    if not hits:
        return "(nothing found)"
    for hit in hits:
        numbers.setdefault(hit.session, len(numbers) + 1)
    shown: list[str] = []
    room = _RESULT_CHARACTERS
    for hit in hits:
        kind = "conversation" if hit.kind == "session" else "fact"
        head = (
            f"[{hit.rank}] {kind} of {' '.join(hit.date.split())}, session {numbers[hit.session]}"
        )
        entry = f"{head}\n{excerpt(hit.text.strip(), words, _HIT_CHARACTERS)}"
        if len(entry) > room:
            break
        shown.append(entry)
        room -= len(entry)
    if left_out := len(hits) - len(shown):
        shown.append(f"({left_out} more without room here)")
    return "\n\n".join(shown)


def excerpt(text: str, words: AbstractSet[str], size: int) -> str:
    """At most `size` characters of a text, from where most of the words stand together."""
    if len(text) <= size:
        return text
    marks = " …"
    size -= 2 * len(marks)
    start = max(0, _densest(_occurrences(text, words), size - _LEAD) - _LEAD)
    start = min(start, len(text) - size)
    before = "… " if start else ""
    after = " …" if start + size < len(text) else ""
    return f"{before}{text[start : start + size]}{after}"


def _occurrences(text: str, words: AbstractSet[str]) -> Iterator[tuple[int, str]]:
    for match in _WORD.finditer(text):
        if (word := match[0].lower()) in words:
            yield match.start(), word


def _densest(occurrences: Iterable[tuple[int, str]], size: int) -> int:
    """The start of the window with most distinct words; of several, with most words, the first."""
    places = list(occurrences)
    best, best_start = (0, 0), 0
    counts: dict[str, int] = {}
    end = 0
    for begin, (start, word) in enumerate(places):
        while end < len(places) and places[end][0] < start + size:
            counts[places[end][1]] = counts.get(places[end][1], 0) + 1
            end += 1
        if (density := (len(counts), end - begin)) > best:
            best, best_start = density, start
        counts[word] -= 1
        if not counts[word]:
            del counts[word]
    return best_start
