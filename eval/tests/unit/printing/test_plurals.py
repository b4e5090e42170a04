"""Counts agree with their nouns."""

import pytest

from memconform.printing.plurals import plural


@pytest.mark.parametrize(
    ("count", "noun", "text"),
    [
        (1, "question", "1 question"),
        (2, "question", "2 questions"),
        (0, "question", "0 questions"),
        (1, "query", "1 query"),
        (3, "query", "3 queries"),
        (1, "retry delay", "1 retry delay"),
        (2, "retry delay", "2 retry delays"),
        (2, "match", "2 matches"),
        (1000, "fix", "1000 fixes"),
    ],
)
def test_only_one_is_singular(count: int, noun: str, text: str) -> None:
    assert plural(count, noun) == text


def test_a_format_applies_to_the_number() -> None:
    assert plural(12_345, "item", spec=",") == "12,345 items"
