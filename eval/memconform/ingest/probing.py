"""Queries by which a document must be found: words of its own, drawn anew each time."""

import random

from memconform.contract.terms import terms
from memconform.ingest.documents import Document

_WINDOW = 240
"""Characters of a text that a probe's words are drawn from."""
_LONG_QUERY = 1_000
"""Characters of a text that are asked for as they stand, where single words did not find it."""


def searchable_text(document: Document) -> str:
    """The text of a document behind any front matter; empty where it is not UTF-8."""
    try:
        text = document.content.decode()
    except UnicodeDecodeError:
        return ""
    if text.startswith("---"):
        # What a daemon takes for front matter it does not index (core.chunk.front-matter).
        text = text.rpartition("\n---")[2]
    return text


def draw_words(text: str, rng: random.Random, count: int) -> list[str]:
    """Up to `count` terms of a random place of `text`, the longest there; empty where it has none.

    A daemon cannot know them beforehand. The longest are the rarest of a place, and no stop words.
    """
    start = rng.randrange(max(1, len(text) - _WINDOW + 1))
    window = terms(text[start : start + _WINDOW])
    # The window may cut its first and its last word.
    inner = window[bool(start) : len(window) - (start + _WINDOW < len(text))]
    distinct = dict.fromkeys(inner or terms(text))
    return sorted(distinct, key=len, reverse=True)[:count]


def long_query(text: str) -> str:
    """The end of a text as it stands."""
    return text[-_LONG_QUERY:]
