"""Porter's stems (M. F. Porter, "An algorithm for suffix stripping", Program 14(3), 1980).

As FTS5 applies the algorithm: to UTF-8, in which any letter but a to z is several consonants.
"""

import re
from collections.abc import Mapping

_LONGEST_TOKEN = 32_768

_LONGEST_STEMMED = 64

# A y is a vowel after a consonant; elsewhere it is a consonant.
_C = rb"[^aeiou][^aeiouy]*"
_V = rb"[aeiouy][aeiou]*"
_FIRST = rb"(?:%s[aeiouy]|[aeiou])" % _C
"""Up to the first vowel."""

_HAS_VOWEL = re.compile(_FIRST)

# The algorithm's measure of a stem is how often consonants follow vowels in it.
_MEASURES_1 = re.compile(rb"%s[aeiou]*%s(?:%s)?" % (_FIRST, _C, _V))
_EXCEEDS_0 = re.compile(rb"%s[aeiou]*%s" % (_FIRST, _C))
_EXCEEDS_1 = re.compile(rb"%s[aeiou]*%s%s%s" % (_FIRST, _C, _V, _C))

_SHORT = re.compile(rb"%s[aeiouy][^aeiouwxy]" % _C)
"""A stem of measure 1 that ends in consonant, vowel, consonant."""

_DOUBLE = re.compile(rb".*([^aeioulsz])\1", re.DOTALL)

_SECOND = {
    b"ational": b"ate",
    b"tional": b"tion",
    b"enci": b"ence",
    b"anci": b"ance",
    b"izer": b"ize",
    b"logi": b"log",
    b"bli": b"ble",
    b"alli": b"al",
    b"entli": b"ent",
    b"eli": b"e",
    b"ousli": b"ous",
    b"ization": b"ize",
    b"ation": b"ate",
    b"ator": b"ate",
    b"alism": b"al",
    b"iveness": b"ive",
    b"fulness": b"ful",
    b"ousness": b"ous",
    b"aliti": b"al",
    b"iviti": b"ive",
    b"biliti": b"ble",
}
_THIRD = {
    b"icate": b"ic",
    b"ative": b"",
    b"alize": b"al",
    b"iciti": b"ic",
    b"ical": b"ic",
    b"ful": b"",
    b"ness": b"",
}
_FOURTH = rb"""
    al ance ence er ic able ible ant ement ment ent (?<=[st])ion ou ism ate iti ous ive ize
""".split()


def stem(token: bytes) -> bytes:
    """The stem of a token; FTS5 cuts tokens of more than 32,768 bytes, and stems none over 64."""
    if not 3 <= len(token) <= _LONGEST_STEMMED:
        return token[:_LONGEST_TOKEN]
    token = _without_participle(_without_plural(token))
    if token.endswith(b"y") and _HAS_VOWEL.match(token[:-1]):
        token = token[:-1] + b"i"
    for suffixes, replacements, applies in _STEPS:
        match = suffixes.fullmatch(token)
        if match and applies.match(match[1]):
            token = match[1] + replacements.get(match[2], b"")
    return _without_end(token)


def _ending(suffixes: Mapping[bytes, bytes] | list[bytes]) -> re.Pattern[bytes]:
    """Matches what ends in one of the suffixes, the longest of them."""
    return re.compile(rb"(.+?)(%s)" % b"|".join(suffixes), re.DOTALL)


_STEPS: tuple[tuple[re.Pattern[bytes], Mapping[bytes, bytes], re.Pattern[bytes]], ...] = (
    (_ending(_SECOND), _SECOND, _EXCEEDS_0),
    (_ending(_THIRD), _THIRD, _EXCEEDS_0),
    (_ending(_FOURTH), {}, _EXCEEDS_1),
)


def _without_plural(token: bytes) -> bytes:
    for suffix in (b"sses", b"ies"):
        if token.endswith(suffix) and token != suffix:
            return token[:-2]
    return token[:-1] if token.endswith(b"s") and not token.endswith(b"ss") else token


def _without_participle(token: bytes) -> bytes:
    if token.endswith(b"eed") and len(token) > 3:
        return token[:-1] if _EXCEEDS_0.match(token[:-3]) else token
    kept = token.removesuffix(b"ing") if token.endswith(b"ing") else token.removesuffix(b"ed")
    if kept == token or not _HAS_VOWEL.match(kept):
        return token
    if len(kept) > 2 and kept.endswith((b"at", b"bl", b"iz")):
        return kept + b"e"
    if _DOUBLE.fullmatch(kept):
        return kept[:-1]
    return kept + b"e" if _SHORT.fullmatch(kept) else kept


def _without_end(token: bytes) -> bytes:
    if token.endswith(b"e"):
        kept = token[:-1]
        if _EXCEEDS_1.match(kept) or (_MEASURES_1.fullmatch(kept) and not _SHORT.fullmatch(kept)):
            token = kept
    if token.endswith(b"ll") and _EXCEEDS_1.match(token[:-1]):
        token = token[:-1]
    return token
