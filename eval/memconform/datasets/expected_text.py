"""Matching of a question's expected strings in a text."""

import re
import unicodedata

from memconform.datasets.question import Question


def holds(question: Question, expected: str, text: str) -> bool:
    """Whether `expected` occurs in `text`, by the question's rules for whole words and case."""
    needle, haystack = _plain(question, expected), _plain(question, text)
    if not question.word:
        return needle in haystack
    return re.search(rf"(?<!\w){re.escape(needle)}(?!\w)", haystack) is not None


def holds_expected(question: Question, text: str) -> bool:
    """Whether `text` contains any expected string, or every one with `match: all`.

    False if the question has no expected strings.
    """
    expected = question.expected_substrings
    combine = all if question.match == "all" else any
    return bool(expected) and combine(holds(question, string, text) for string in expected)


def _plain(question: Question, value: str) -> str:
    # "Café" may be composed or decomposed.
    composed = unicodedata.normalize("NFC", value)
    return composed if question.case_sensitive else composed.casefold()
