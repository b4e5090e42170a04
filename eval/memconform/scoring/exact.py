"""The exact scorer: does the text hold the expected strings?"""

import re
import unicodedata
from collections.abc import Callable

from memconform.datasets.model import Question


def exact_score(question: Question, text: str) -> float:
    """1.0 if any (or with `match: all` every) expected string occurs in `text`, else 0.0.

    Raises:
        ValueError: for a question without expected strings, which nothing could pass.
    """
    if not question.expected_substrings:
        raise ValueError(f"question {question.id!r} has no expected_substrings")
    holds = _matcher(question, text)
    combine = all if question.match == "all" else any
    return float(combine(holds(expected) for expected in question.expected_substrings))


def _matcher(question: Question, text: str) -> Callable[[str], bool]:
    def plain(value: str) -> str:
        # One spelling of accents: "Café" may reach us composed or decomposed.
        composed = unicodedata.normalize("NFC", value)
        return composed if question.case_sensitive else composed.casefold()

    haystack = plain(text)

    def holds(expected: str) -> bool:
        needle = plain(expected)
        if not question.word:
            return needle in haystack
        return re.search(rf"(?<!\w){re.escape(needle)}(?!\w)", haystack) is not None

    return holds
