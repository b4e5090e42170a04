"""Invisible characters, in texts that people write and compare by eye."""

import unicodedata
from typing import Final

_JOINERS: Final = frozenset("\u200c\u200d")
"""They change how words of Persian and Hindi, and emoji, look."""

_BLANKS: Final = frozenset(
    "\u034f"  # combining grapheme joiner
    "\u115f\u1160\u3164\uffa0"  # Hangul fillers
    "\u17b4\u17b5"  # Khmer inherent vowels
    "\u180b\u180c\u180d\u180f"  # Mongolian variation selectors
    "\u2800"  # braille without dots
)
"""Invisible characters of visible categories (mostly Default_Ignorable_Code_Point)."""

_UNSEEN_CATEGORIES: Final = frozenset({"Cc", "Cf", "Zl", "Zp", "Zs"})
"""Without Cn: the emoji of next year are unassigned in the tables of this Python."""


def _is_variation_selector(char: str) -> bool:
    return "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"


def _is_invisible(char: str) -> bool:
    return (
        unicodedata.category(char) in _UNSEEN_CATEGORIES
        or char in _BLANKS
        or _is_variation_selector(char)
    )


def is_blank(text: str) -> bool:
    """Whether nothing of a text is visible: it is empty, white space, or of zero width."""
    # A fast path: a dataset has five texts per row, and nearly all begin like this. ASCII only,
    # because a Hangul filler counts as alphabetic.
    if text[:1].isascii() and text[:1].isalnum():
        return False
    return all(map(_is_invisible, text))


def hidden_characters(text: str) -> list[str]:
    """Zero-width characters, which writers seldom intend, such as `U+200B`; each listed once.

    White space, joiners and variation selectors are excluded, because they change how a text looks.
    """
    return [
        f"U+{ord(char):04X}"
        for char in dict.fromkeys(text)
        if _is_invisible(char)
        and not char.isspace()
        and char not in _JOINERS
        and not _is_variation_selector(char)
    ]


def comparable(text: str) -> str:
    """A normal form: texts that look the same are equal in it."""
    visible = "".join(char for char in text if char.isspace() or not _is_invisible(char))
    return " ".join(unicodedata.normalize("NFC", visible).split())
