"""A reranker that asks a language model."""

from collections.abc import Sequence

from memoryd.llm.llm import ChatModel, Prompt
from memoryd.prompt.answer import read_scores
from memoryd.prompt.prompt import RERANK_SYSTEM, Note, user_message
from memoryd.upstream import UpstreamError


class LLMReranker:
    """Has a language model score all notes in one reply."""

    name = "llm"

    def __init__(self, chat: ChatModel) -> None:
        self._chat = chat

    async def scores(self, query: str, notes: Sequence[Note]) -> list[float]:
        reply = await self._chat.complete(Prompt(RERANK_SYSTEM, user_message(query, notes)))
        scores = read_scores(reply, len(notes))
        if scores is None:
            raise UpstreamError("bad_gateway", "the reranker did not return a score for each note")
        return scores
