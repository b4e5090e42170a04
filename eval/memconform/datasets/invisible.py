"""Characters that nobody sees, in texts that people write and compare by eye."""

import unicodedata
from typing import Final

_JOINERS: Final = frozenset("\u200c\u200d")
"""Without them words of Persian and Hindi, and emoji, look otherwise."""

_BLANKS: Final = frozenset(
    "\u034f"  # combining grapheme joiner
    "\u115f\u1160\u3164\uffa0"  # Hangul fillers
    "\u17b4\u17b5"  # Khmer inherent vowels
    "\u180b\u180c\u180d\u180f"  # Mongolian variation selectors
    "\u2800"  # braille without dots
)
"""Of a category that is seen, and not seen all the same (Default_Ignorable_Code_Point, mostly)."""

_UNSEEN_CATEGORIES: Final = frozenset({"Cc", "Cf", "Zl", "Zp", "Zs"})
"""Not Cn: the emoji of next year are unassigned in the tables of this Python."""


def _is_variation_selector(char: str) -> bool:
    return "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"


def _is_invisible(char: str) -> bool:
    return (
        unicodedata.category(char) in _UNSEEN_CATEGORIES
        or char in _BLANKS
        or _is_variation_selector(char)
    )


def is_blank(text: str) -> bool:
    """Whether nothing of a text is seen: it is empty, white space, or of zero width."""
    # A data set has five texts a row, and nearly each begins so. (A Hangul filler is alphabetic.)
    if text[:1].isascii() and text[:1].isalnum():
        return False
    return all(map(_is_invisible, text))


def hidden_characters(text: str) -> list[str]:
    """The characters that take no room, and that a writer seldom means: `U+200B`, each once.

    White space, joiners and variation selectors are none: they change how a text looks.
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
    """What is left of a text to tell it from others by eye."""
    seen = "".join(char for char in text if char.isspace() or not _is_invisible(char))
    return " ".join(unicodedata.normalize("NFC", seen).split())
