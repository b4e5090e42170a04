"""Tells visible text from blank text. Pure."""

import unicodedata

_BLANK_LETTERS = frozenset("\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Hangul fillers, inherent Khmer vowels and the empty braille cell: by category letters, marks or
symbols, but blank in every font (Unicode's Default_Ignorable_Code_Point, and U+2800)."""


def is_visible(text: str) -> bool:
    """Whether `text` has a visible letter, digit, punctuation mark or symbol."""
    return any(
        unicodedata.category(letter)[0] in "LNPS" and letter not in _BLANK_LETTERS
        for letter in text
    )
