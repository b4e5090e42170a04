"""A reranker that asks a language model."""

from collections.abc import Sequence
from typing import Any

from memoryd.llm.llm import Chat, Prompt
from memoryd.prompt.answer import read_scores
from memoryd.prompt.prompt import RERANK_SYSTEM, user_message
from memoryd.upstream import UpstreamError


class ModelReranker:
    """Has a language model score all chunks in one reply."""

    name = "llm"

    def __init__(self, chat: Chat) -> None:
        self._chat = chat

    async def scores(self, query: str, chunks: Sequence[dict[str, Any]]) -> list[float]:
        reply = await self._chat.complete(Prompt(RERANK_SYSTEM, user_message(query, chunks)))
        scores = read_scores(reply, len(chunks))
        if scores is None:
            raise UpstreamError("bad_gateway", "the reranker did not return a score for each note")
        return scores
