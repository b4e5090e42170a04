"""The `fake` reader, which quotes the notes."""

import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from memoryd.reader.reader import AnswerEnd, Question
from memoryd.text.stop_words import STOP_WORDS
from memoryd.text.terms import terms

NO_ANSWER = "No information available."

_SENTENCE = re.compile(r"[^.!?\n]*[.!?\n]|[^.!?\n]+")

_WORD = re.compile(r"[^ ]+ *")

_SPACE = " \t\r\n\f\v"


class FakeReader:
    """Answers with the retrieved sentence that shares most terms with the question."""

    async def read(self, question: Question) -> AsyncIterator[str | AnswerEnd]:
        answer = extract(question.text, [note.text for note in question.notes])
        for delta in answer.deltas:
            yield delta
        yield AnswerEnd([] if answer.source is None else [answer.source])


@dataclass(frozen=True, slots=True)
class Extract:
    text: str
    source: int | None
    """Index of the chunk that contains the answer; None if no chunk does."""

    @property
    def deltas(self) -> list[str]:
        """One piece per word, with the spaces that follow it; joined, they are the text."""
        return _WORD.findall(self.text)


def sentences(text: str) -> list[str]:
    """`text` split after every `.`, `!`, `?` and newline, trimmed, without empty sentences."""
    return [trimmed for piece in _SENTENCE.findall(text) if (trimmed := piece.strip(_SPACE))]


def extract(question: str, chunks: Sequence[str]) -> Extract:
    """The sentence with most distinct question terms, stop words excluded; the first of equals."""
    question_terms = set(terms(question)) - STOP_WORDS
    best, best_score = Extract(NO_ANSWER, None), 0
    for index, chunk in enumerate(chunks):
        for sentence in sentences(chunk):
            score = len(question_terms.intersection(terms(sentence)))
            if score > best_score:
                best, best_score = Extract(sentence, index), score
    return best
