"""The `fake` reader: answers with the retrieved sentence that shares most terms with a question."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

from memoryd.text import terms

NO_ANSWER = "No information available."

STOP_WORDS = frozenset(resources.files("memoryd").joinpath("stopwords.txt").read_text().split())

_SENTENCE = re.compile(r"[^.!?\n]*[.!?\n]|[^.!?\n]+")
_WORD = re.compile(r"[^ ]+ *")
_SPACE = " \t\r\n\f\v"


@dataclass(frozen=True, slots=True)
class Answer:
    text: str
    source: int | None
    """Index of the chunk that the answer was taken from; None when nothing answers."""

    @property
    def deltas(self) -> list[str]:
        """One piece a word, each with the spaces behind it; joined they are the text."""
        return _WORD.findall(self.text)


def sentences(text: str) -> list[str]:
    """`text` cut behind every `.`, `!`, `?` and newline, trimmed, empty ones dropped."""
    return [trimmed for cut in _SENTENCE.findall(text) if (trimmed := cut.strip(_SPACE))]


def read(question: str, chunks: Sequence[str]) -> Answer:
    """The first best sentence in rank order, by distinct question terms that are no stop words."""
    wanted = set(terms(question)) - STOP_WORDS
    best, best_score = Answer(NO_ANSWER, None), 0
    for index, chunk in enumerate(chunks):
        for sentence in sentences(chunk):
            score = len(wanted.intersection(terms(sentence)))
            if score > best_score:
                best, best_score = Answer(sentence, index), score
    return best
