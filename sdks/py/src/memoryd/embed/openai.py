"""OpenAI's embeddings API, and services that have the same."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from memoryd.embed.embed import Vector, normalize
from memoryd.upstream import SilenceTimeout, call_service

CALL_LIMIT = 64
"""Texts per call to a service."""


class OpenAIEmbedder:
    """Services with OpenAI's embeddings API.

    Call it from worker threads; the requests themselves run on the event loop.
    """

    def __init__(self, name: str, client: Any, model: str, silence_timeout: SilenceTimeout) -> None:  # noqa: ANN401 - its module is imported only where it is used
        self.name = name
        self._client = client
        self.model = model
        self._silence_timeout = silence_timeout

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        vectors: list[Vector] = []
        for start in range(0, len(texts), CALL_LIMIT):
            vectors += call_service(self._call, texts[start : start + CALL_LIMIT])
        return vectors

    async def _call(self, texts: Sequence[str]) -> list[Vector]:
        return await self._silence_timeout.wait(self._answer(list(texts)))

    async def _answer(self, texts: list[str]) -> list[Vector]:
        answer = await self._client.embeddings.create(
            model=self.model,
            input=texts,
            # By default, the client requests base64, which not every service supports.
            encoding_format="float",
        )
        rows = [item.embedding for item in sorted(answer.data, key=lambda item: item.index)]
        if len(rows) != len(texts) or len({len(row) for row in rows}) != 1 or not rows[0]:
            raise self._silence_timeout.failure(
                f"returned {len(rows)} embeddings for {len(texts)} texts"
            )
        vectors = [normalize(row) for row in rows]
        if not all(np.isfinite(vector).all() for vector in vectors):
            raise self._silence_timeout.failure("an embedding contains numbers that are not finite")
        return vectors
