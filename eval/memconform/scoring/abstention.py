"""Detects answers that abstain: one order of comparisons for every scorer.

A reference answer of LongMemEval says of one of five things that its scale is not mentioned; its
exact repetition was taken for an abstention because it contains that phrase.
"""

import re
import unicodedata
from typing import Final

from memconform.datasets.expected_text import holds_expected
from memconform.datasets.invisible import comparable
from memconform.datasets.question import Question

PHRASES: Final = ("no information available", "not mentioned")
"""Those of LoCoMo's released code, to which readers are told to keep."""

_PLACES: Final = (
    r"conversations?|dialogues?|chats?|messages|history|context|documents?|notes|memor(?:y|ies)"
    r"|passages?|texts?|sources?|records?"
)
_WHICH: Final = r"(?:(?:the|my|your|our|these|this|any|provided|given|available) )*"
_IN_PLACE: Final = rf"{_WHICH}(?:{_PLACES})"

_DECLINES: Final = re.compile(
    rf"(?:based on {_IN_PLACE} )?"
    r"(?:(?:there is|there's|it is|it's|this is|that is|that's"
    r"|(?:the|this|that) (?:answer|information) is) )?"
    r"(?P<phrase>no information(?: is)? available|not mentioned)"
    rf"(?: anywhere)?(?: (?:in|from) {_IN_PLACE})?"
)
_PHRASE: Final = re.compile(r"\b(?:no information(?: is| was)? available|not mentioned)\b")
_WORD: Final = re.compile(r"[^\W_]+")
_DECLINING: Final = re.compile(
    rf"[smt]|re|information|available|mentioned|answer|sorry|unfortunately|given|provided|{_PLACES}"
)
"""Words of an answer that declines, besides stop words and those of its question."""
_APOLOGY: Final = re.compile(
    r"\A(?:(?:(?:i'm|i am|we're|we are) )?(?:very |so )?sorry|unfortunately)(?: but)?(?: |\Z)"
)
_LABEL: Final = re.compile(r"\A\W*(?:final )?answer\W*:", re.IGNORECASE)
_SENTENCE_END: Final = re.compile(r"[.!;:]|\n\s*\n")


def abstains(question: Question, answer: str) -> bool:
    """Whether an answer is nothing but an abstention, in the sense of its question.

    That is one of the phrases, perhaps with an apology, a label or the place that was searched, or
    the question's own marker. A phrase inside a longer answer says nothing of the answer as a
    whole; nor does one that the reference answer or an expected string contains, unless the
    question is to be abstained from.
    """
    declined = _declined(question, answer)
    if declined is None:
        return False
    inside = re.compile(rf"(?<!\w){re.escape(declined)}(?!\w)")
    expected = (*question.answers, *question.expected_substrings)
    return question.abstain or not any(inside.search(_plain(text)) for text in expected)


def abstains_rightly(question: Question, answer: str) -> bool:
    """Whether an answer to a question that has none says so, or says what is expected."""
    plain = _plain(answer)
    is_reference = any(plain == _plain(reference) for reference in question.answers)
    says_so = abstains(question, answer) or _declines_what_was_asked(question, answer)
    return holds_expected(question, answer) or is_reference or says_so


def _declines_what_was_asked(question: Question, answer: str) -> bool:
    """Whether an answer has one of the phrases, and else only words of its question.

    Of a question without an answer that is right. Any other word may be an answer nevertheless:
    `She went to Rome, the year is not mentioned.`
    """
    if _PHRASE.search(comparable(answer).casefold()) is None:
        return False
    from memconform.upstream.extractive import STOP_WORDS  # noqa: PLC0415 - few answers need them

    known = STOP_WORDS.union(_words(question.question))
    return all(word in known or _DECLINING.fullmatch(word) for word in _words(answer))


def _words(text: str) -> list[str]:
    """Also those of one character, which may be an answer, such as a digit."""
    return _WORD.findall(comparable(text).casefold())


def is_marker(question: Question, answer: str) -> bool:
    """Whether an answer equals the question's marker, apart from case, quotes and punctuation."""
    marker = question.abstain_marker
    return marker is not None and _plain(answer) == _plain(marker)


def contains_phrase(answer: str) -> bool:
    """The rule of LoCoMo's released code, for its own scores alone."""
    lowered = answer.lower()
    return any(phrase in lowered for phrase in PHRASES)


def _declined(question: Question, answer: str) -> str | None:
    """The phrase or marker that an answer is nothing but; None if it is anything else."""
    if is_marker(question, answer):
        return _plain(answer)
    phrase = None
    for sentence in _SENTENCE_END.split(_LABEL.sub("", answer)):
        plain = _plain(sentence)
        bare = _plain(_APOLOGY.sub("", plain))
        if (match := _DECLINES.fullmatch(bare)) is not None:
            phrase = match["phrase"]
        elif any(map(str.isalnum, bare)):
            return None
    return phrase


def _plain(text: str) -> str:
    """A text as it is compared: without case, commas, and punctuation around it."""
    folded = comparable(text).casefold().replace("\u2019", "'").replace(",", "")
    start, end = 0, len(folded)
    while start < end and _is_punctuation(folded[start]):
        start += 1
    while start < end and _is_punctuation(folded[end - 1]):
        end -= 1
    # A text of punctuation alone, such as the marker "-", is compared as it stands.
    return " ".join(folded[start:end].split()) or folded


def _is_punctuation(character: str) -> bool:
    return character == "`" or unicodedata.category(character)[0] in "PZ"
