"""Readers: they answer a question from retrieved chunks."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from memoryd.llm.llm import Usage
from memoryd.prompt.prompt import Note, ReaderMode


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    notes: Sequence[Note]
    date: str | None = None
    mode: ReaderMode = "basic"
    model: str | None = None
    """Overrides the configured model."""


@dataclass(frozen=True, slots=True)
class AnswerEnd:
    """Follows the last delta of an answer."""

    cited: list[int]
    """Indices of the notes that the answer cites."""
    usage: Usage | None = None


class Reader(Protocol):
    def read(self, question: Question) -> AsyncIterator[str | AnswerEnd]:
        """Stream the deltas of an answer, then one AnswerEnd.

        Raises:
            UpstreamError: if a service fails, even in mid-answer.
        """
        ...
