"""Readers: a question and the chunks that were found for it, made into an answer."""

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
class Closing:
    """What follows an answer's last delta."""

    cited: list[int]
    """Indices of the chunks that it is taken from."""
    usage: Usage | None = None


class Reader(Protocol):
    def read(self, ask: Ask, chunks: Sequence[dict[str, Any]]) -> AsyncIterator[str | Closing]:
        """The answer's deltas, and one Closing; raises UpstreamError."""
        ...


class FakeReader:
    """Answers with the retrieved sentence that shares most terms with the question."""

    async def read(
        self, ask: Ask, chunks: Sequence[dict[str, Any]]
    ) -> AsyncIterator[str | Closing]:
        answer = extract(ask.question, [chunk["text"] for chunk in chunks])
        for delta in answer.deltas:
            yield delta
        yield Closing([] if answer.source is None else [answer.source])


class ModelReader:
    """Puts the chunks before a language model."""

    def __init__(self, chat: Chat) -> None:
        self._chat = chat

    async def read(
        self, ask: Ask, chunks: Sequence[dict[str, Any]]
    ) -> AsyncIterator[str | Closing]:
        prompt = Prompt(
            system=READER_SYSTEM[ask.reader_mode],
            user=user_message(ask.question, chunks, ask.question_date, ask.reader_mode),
            model=ask.model,
        )
        said: list[str] = []
        usage = None
        async for piece in self._chat.stream(prompt):
            if isinstance(piece, Usage):
                usage = piece
            else:
                said.append(piece)
                yield piece
        text = "".join(said)
        if not text.strip():
            raise UpstreamError("bad_gateway", "the model sent no text")
        yield Closing(cited(text, len(chunks)), usage)


@dataclass(frozen=True, slots=True)
class Extract:
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


def extract(question: str, chunks: Sequence[str]) -> Extract:
    """The first best sentence in rank order, by distinct question terms that are no stop words."""
    wanted = set(terms(question)) - STOP_WORDS
    best, best_score = Extract(NO_ANSWER, None), 0
    for index, chunk in enumerate(chunks):
        for sentence in sentences(chunk):
            score = len(wanted.intersection(terms(sentence)))
            if score > best_score:
                best, best_score = Extract(sentence, index), score
    return best
