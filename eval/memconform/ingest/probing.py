"""Queries by which a document must be found: words of its own, drawn anew each time."""

import random
from collections import Counter

from memconform.contract.chunking import bodies
from memconform.contract.terms import terms
from memconform.ingest.documents import Document
from memconform.ingest.ingested import IngestedDocuments

_WINDOW = 600
"""Characters of a text that a probe's words are drawn from."""
_LONG_QUERY = 1_000
"""Characters of a text that are asked for as they stand, where single words did not find it."""
_SHORT = 4
_SAMPLED = 512
"""Documents by which words are told to be rare. A query of 100 words that are each in one of 10,000
documents took 10 to 23 ms, of 100 long words as they came 135 to 167 ms."""


def searchable_text(document: Document) -> str:
    """The text of a document behind any front matter; empty where it is not UTF-8."""
    try:
        return min(bodies(document.content), key=len).decode()
    except UnicodeDecodeError:
        return ""


class RareWords:
    """Draws words by which a document is told from others, other ones each time.

    A daemon cannot know them beforehand, and a keyword index finds them quickly.
    """

    def __init__(self, documents: IngestedDocuments, rng: random.Random) -> None:
        self._rng = rng
        self._counts: Counter[str] = Counter()
        paths = documents.paths
        for path in paths[:: max(1, len(paths) // _SAMPLED)]:
            self._counts.update(set(terms(searchable_text(documents.document(path)))))

    def draw(self, text: str, count: int) -> list[str]:
        """Up to `count` words of a random place of `text`; empty where it has none at all."""
        start = self._rng.randrange(max(1, len(text) - _WINDOW + 1))
        window = terms(text[start : start + _WINDOW])
        # The window may cut its first and its last word.
        inner = window[bool(start) : len(window) - (start + _WINDOW < len(text))]
        distinct = set(inner or terms(text))
        # Short words are common in more documents than a sample shows.
        rare = [word for word in distinct if word not in self._counts and len(word) >= _SHORT]
        if len(rare) >= count:
            return self._rng.sample(rare, count)
        rest = sorted(distinct.difference(rare), key=self._counts.__getitem__)
        return [*rare, *rest][:count]


def long_query(text: str) -> str:
    """The end of a text as it stands, but for blanks."""
    return text.strip()[-_LONG_QUERY:]
