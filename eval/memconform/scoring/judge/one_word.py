"""Verdicts that a judge gives as one word."""

import re
from collections.abc import Iterable
from functools import cache
from typing import Final, Literal

from memconform.llm.replies import unfence
from memconform.scoring.judge.prompt import JudgeReply

_WORDS: Final = re.compile(r"[^\W\d_]+")
_DOUBT: Final = re.compile(
    r"\b(?:no|not|none|never|false|part(?:ly|ial|ially)|missing|misses|lacks?|except|but|however|0)\b"
    r"|n\Wt\b|\A[\s*_\"']*[:=?/]",
    re.IGNORECASE,
)
"""What an explanation of an acceptance must not contain: `Correct? No.`, `yes: false`."""


@cache
def _pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(
        rf"[\W_]*({'|'.join(words)})(?:[\W_]*|\s*[^\w\s]+\s.*|[^\w\s]*\n.*)",
        re.IGNORECASE | re.DOTALL,
    )


def parse_word(text: str, *, right: Iterable[str], wrong: Iterable[str]) -> JudgeReply:
    """The verdict of a reply that is one of these words, with the reply as its reason.

    An explanation may follow if punctuation or a line end separates it, and if it does not contain
    another of the words. That of an acceptance must not express doubt, because `Correct? No.` and
    `{"correct": false}` are none.

    Raises:
        ValueError: for anything else, such as prose in which one of the words occurs.
    """
    text = unfence(text)
    accepting = tuple(right)
    words = (*accepting, *wrong)
    match = _pattern(words).fullmatch(text)
    said = match[1].lower() if match else ""
    spoken = {word.lower() for word in _WORDS.findall(text)}.intersection(words)
    is_right = said in accepting
    doubtful = is_right and match is not None and _DOUBT.search(text[match.end(1) :])
    if spoken != {said} or doubtful or text.lstrip().startswith(("{", "[")):
        known = f"neither {' nor '.join(words)}"
        raise ValueError(f"the reply is {known}: {text[:80]!r}")
    verdict: Literal["correct", "incorrect"] = "correct" if is_right else "incorrect"
    return JudgeReply(reason=text.strip()[:400], verdict=verdict, score=float(is_right))
