"""Probe queries that must find a document: its own words, drawn afresh each time."""

import random
from collections import Counter

from memconform.contract.chunking import bodies
from memconform.contract.terms import terms
from memconform.ingest.documents import Document
from memconform.ingest.ingested import IngestedDocuments

_WINDOW = 600
"""Characters of text from which a probe's words are drawn."""
_LONG_QUERY = 1_000
"""Characters of verbatim text in the query for a document that single words did not find."""
_MOST_WORDS = 256
"""Words of a query that a daemon must use, and no more than a small embedding model reads."""
_SHORT = 4
"""Words with fewer characters are not considered rare."""
_SAMPLED = 512
"""Documents sampled to find rare words. A query of 100 words that each occur in one of 10,000
documents took 10 to 23 ms; one of 100 arbitrary long words took 135 to 167 ms."""


def searchable_text(document: Document) -> str:
    """The text of a document after any front matter; empty if it is not UTF-8."""
    try:
        return min(bodies(document.content), key=len).decode()
    except UnicodeDecodeError:
        return ""


class RareWords:
    """Draws words that distinguish a document from others, different ones each time.

    A daemon cannot know them beforehand, and a keyword index finds them quickly.
    """

    def __init__(self, documents: IngestedDocuments, rng: random.Random) -> None:
        self._rng = rng
        self._counts: Counter[str] = Counter()
        paths = documents.paths
        for path in paths[:: max(1, len(paths) // _SAMPLED)]:
            self._counts.update(set(terms(searchable_text(documents.document(path)))))

    def draw(self, text: str, count: int) -> list[str]:
        """Draw up to `count` words from a random window of `text`; empty if it has no words."""
        start = self._rng.randrange(max(1, len(text) - _WINDOW + 1))
        window = terms(text[start : start + _WINDOW])
        # The window may cut through its first and last words.
        inner = window[bool(start) : len(window) - (start + _WINDOW < len(text))]
        distinct = set(inner or terms(text))
        # Short words occur in more documents than a sample shows.
        rare = [word for word in distinct if word not in self._counts and len(word) >= _SHORT]
        if len(rare) >= count:
            return self._rng.sample(rare, count)
        rest = sorted(distinct.difference(rare), key=self._counts.__getitem__)
        return [*rare, *rest][:count]

    def shuffle(self, text: str) -> list[str]:
        """Draw up to 256 words from all of `text`, in random order.

        They are not an exact part of the text, which a daemon may find without any index.
        """
        words = terms(text)
        return self._rng.sample(words, min(len(words), _MOST_WORDS))


def long_query(text: str) -> str:
    """The end of a text, verbatim except for outer whitespace."""
    return text.strip()[-_LONG_QUERY:]
