"""Whether a text holds what a question expects."""

import re
import unicodedata

from memconform.datasets.model import Question


def holds(question: Question, expected: str, text: str) -> bool:
    """Whether `expected` occurs in `text` by the question's rules for words and case."""
    needle, haystack = _plain(question, expected), _plain(question, text)
    if not question.word:
        return needle in haystack
    return re.search(rf"(?<!\w){re.escape(needle)}(?!\w)", haystack) is not None


def _plain(question: Question, value: str) -> str:
    # One spelling of accents: "Café" may reach us composed or decomposed.
    composed = unicodedata.normalize("NFC", value)
    return composed if question.case_sensitive else composed.casefold()
