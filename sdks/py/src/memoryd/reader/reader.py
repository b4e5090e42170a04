"""Readers: they answer a question from retrieved chunks."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from memoryd.api.bodies import Ask
from memoryd.llm.llm import Usage


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
