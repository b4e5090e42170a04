"""Rerankers: how well each of a few documents answers a query."""

from collections.abc import Sequence
from typing import Any, Protocol

from memoryd.chat import Chat, Prompt
from memoryd.prompts import RERANK_SYSTEM, finite, read_scores, user_message
from memoryd.upstream import SilenceTimeout, UpstreamError


class Reranker(Protocol):
    name: str

    async def scores(self, query: str, chunks: Sequence[dict[str, Any]]) -> list[float]:
        """One finite score a chunk, in their order; raises UpstreamError."""
        ...


class HttpReranker:
    """Posts to a service that speaks like Cohere's, Jina's and most servers of cross-encoders."""

    name = "http"

    def __init__(
        self,
        client: Any,  # noqa: ANN401 - its module is imported only where it is used
        url: str,
        model: str | None,
        silence_timeout: SilenceTimeout,
        headers: dict[str, Any],
    ) -> None:
        self._client = client
        self._url = url
        self._model = model
        self._silence_timeout = silence_timeout
        self._options = {"headers": headers}

    async def scores(self, query: str, chunks: Sequence[dict[str, Any]]) -> list[float]:
        body = {
            "query": query,
            "documents": [chunk["text"] for chunk in chunks],
            "top_n": len(chunks),
        }
        if self._model is not None:
            body["model"] = self._model
        return await self._silence_timeout.wait(self._answer(body, len(chunks)))

    async def _answer(self, body: dict[str, Any], documents: int) -> list[float]:
        # The documented way to an address that the vendor's API does not have.
        answer = await self._client.post(
            self._url, cast_to=object, body=body, options=self._options
        )
        found = [(r["index"], finite(r["relevance_score"])) for r in answer["results"]]
        scores = dict(found)
        if len(found) != documents or scores.keys() != set(range(documents)):
            raise self._silence_timeout.failed("the answer has not one score for each document")
        return [scores[index] for index in range(documents)]


class ModelReranker:
    """Has a language model score all documents in one reply."""

    name = "llm"

    def __init__(self, chat: Chat) -> None:
        self._chat = chat

    async def scores(self, query: str, chunks: Sequence[dict[str, Any]]) -> list[float]:
        reply = await self._chat.complete(Prompt(RERANK_SYSTEM, user_message(query, chunks)))
        scores = read_scores(reply, len(chunks))
        if scores is None:
            raise UpstreamError(
                "bad_gateway", "the reranking model did not reply one score for each note"
            )
        return scores
