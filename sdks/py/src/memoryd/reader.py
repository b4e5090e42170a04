"""Readers: they answer a question from retrieved chunks."""

import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, Protocol

from memoryd.chat import Chat, Prompt, Usage
from memoryd.models import Ask
from memoryd.prompts import READER_SYSTEM, cited, user_message
from memoryd.text import terms
from memoryd.upstream import UpstreamError

NO_ANSWER = "No information available."

STOP_WORDS = frozenset(resources.files("memoryd").joinpath("stopwords.txt").read_text().split())

_SENTENCE = re.compile(r"[^.!?\n]*[.!?\n]|[^.!?\n]+")
_WORD = re.compile(r"[^ ]+ *")
_SPACE = " \t\r\n\f\v"


@dataclass(frozen=True, slots=True)
class AnswerEnd:
    """Follows the last delta of an answer."""

    cited: list[int]
    """Indices of the chunks that the answer cites."""
    usage: Usage | None = None


class Reader(Protocol):
    def read(self, ask: Ask, chunks: Sequence[dict[str, Any]]) -> AsyncIterator[str | AnswerEnd]:
        """Stream the deltas of an answer, then one AnswerEnd.

        Raises:
            UpstreamError: if a service fails, even in mid-answer.
        """
        ...


class FakeReader:
    """Answers with the retrieved sentence that shares most terms with the question."""

    async def read(
        self, ask: Ask, chunks: Sequence[dict[str, Any]]
    ) -> AsyncIterator[str | AnswerEnd]:
        answer = extract(ask.question, [chunk["text"] for chunk in chunks])
        for delta in answer.deltas:
            yield delta
        yield AnswerEnd([] if answer.source is None else [answer.source])


class ModelReader:
    """Answers with a language model."""

    def __init__(self, chat: Chat) -> None:
        self._chat = chat

    async def read(
        self, ask: Ask, chunks: Sequence[dict[str, Any]]
    ) -> AsyncIterator[str | AnswerEnd]:
        prompt = Prompt(
            system=READER_SYSTEM[ask.reader_mode],
            user=user_message(ask.question, chunks, ask.question_date, ask.reader_mode),
            model=ask.model,
        )
        pieces: list[str] = []
        usage = None
        async for piece in self._chat.stream(prompt):
            if isinstance(piece, Usage):
                usage = piece
            else:
                pieces.append(piece)
                yield piece
        text = "".join(pieces)
        if not text.strip():
            raise UpstreamError("bad_gateway", "the model returned no text")
        yield AnswerEnd(cited(text, len(chunks)), usage)


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
