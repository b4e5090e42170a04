"""A reranker behind HTTP."""

from collections.abc import Sequence
from typing import Any

from memoryd.prompt.answer import finite
from memoryd.prompt.prompt import Note
from memoryd.upstream import SilenceTimeout


class HttpReranker:
    """Posts to a service with the rerank API of Cohere, Jina and most cross-encoder servers."""

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

    async def scores(self, query: str, notes: Sequence[Note]) -> list[float]:
        body = {
            "query": query,
            "documents": [note.text for note in notes],
            "top_n": len(notes),
        }
        if self._model is not None:
            body["model"] = self._model
        return await self._silence_timeout.wait(self._answer(body, len(notes)))

    async def _answer(self, body: dict[str, Any], documents: int) -> list[float]:
        # The documented way to call an address that is not in the vendor's API.
        answer = await self._client.post(
            self._url, cast_to=object, body=body, options=self._options
        )
        pairs = [(r["index"], finite(r["relevance_score"])) for r in answer["results"]]
        scores = dict(pairs)
        if len(pairs) != documents or scores.keys() != set(range(documents)):
            raise self._silence_timeout.failure(
                "the response does not have one score for each document"
            )
        return [scores[index] for index in range(documents)]
