"""Embedders: they turn texts into float32 vectors of length 1."""

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from anyio import from_thread

from memoryd.text import terms
from memoryd.upstream import SilenceTimeout

Vector = npt.NDArray[np.float32]

_FNV_OFFSET = 0x811C9DC5
_FNV_PRIME = 0x01000193


CALL_LIMIT = 64
"""Texts per call to a service."""


class Embedder(Protocol):
    name: str
    """Identifies the vectors: those of embedders with the same name are comparable."""

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One L2-normalized vector per text; the zero vector if there is nothing to embed.

        Raises:
            UpstreamError: if a service fails.
        """
        ...


def normalize(values: Sequence[float]) -> Vector:
    """Scale to length 1 in float64, then convert to float32."""
    vector = np.array(values, dtype=np.float64)
    # In the order of the dimensions, as the contract requires; `np.sum` adds pairwise.
    norm = math.sqrt(float(np.cumsum(vector * vector)[-1]))
    return (vector / norm if norm else vector).astype(np.float32)


def fnv1a(data: bytes) -> int:
    """32-bit FNV-1a."""
    value = _FNV_OFFSET
    for byte in data:
        value = (value ^ byte) * _FNV_PRIME & 0xFFFFFFFF
    return value


_CACHED_LENGTH = 64
"""Characters of the longest feature that is cached; a term may be as long as a document."""


@lru_cache(maxsize=1 << 16)
def _cached_bucket(feature: str) -> tuple[int, int]:
    return _bucket(feature)


def _bucket(feature: str) -> tuple[int, int]:
    value = fnv1a(feature.encode())
    return value & 0xFF, -1 if value >> 31 else 1


class FeatureHash:
    """`fh256-1`: signed feature hashing of terms and adjacent pairs of terms."""

    name = "fh256-1"
    _dimensions = 256

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [self._one(text) for text in texts]

    def _one(self, text: str) -> Vector:
        counts = [0] * self._dimensions
        words = terms(text)
        for features in (words, map(" ".join, pairwise(words))):
            for feature in features:
                hashed = _cached_bucket if len(feature) <= _CACHED_LENGTH else _bucket
                index, sign = hashed(feature)
                counts[index] += sign
        return normalize(counts)


class RemoteEmbedder:
    """Services with OpenAI's embeddings API.

    Call it from worker threads; the requests themselves run on the event loop.
    """

    def __init__(self, name: str, client: Any, model: str, silence_timeout: SilenceTimeout) -> None:  # noqa: ANN401 - its module is imported only where it is used
        self.name = name
        self._client = client
        self._model = model
        self._silence_timeout = silence_timeout

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        vectors: list[Vector] = []
        for start in range(0, len(texts), CALL_LIMIT):
            call = self._call(list(texts[start : start + CALL_LIMIT]))
            vectors += from_thread.run(self._silence_timeout.wait, call)
        return vectors

    async def _call(self, texts: list[str]) -> list[Vector]:
        answer = await self._client.embeddings.create(
            model=self._model,
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
