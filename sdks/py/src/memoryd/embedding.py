"""Embedders: text to unit vectors of float32."""

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
"""Texts that one call to a service carries."""


class Embedder(Protocol):
    name: str
    """Vectors of two embedders with one name can be compared."""

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One L2-normalized vector a text, or the zero vector where there is nothing to embed.

        Raises UpstreamError where a service is asked and fails.
        """
        ...


def unit(values: Sequence[float]) -> Vector:
    """`values` scaled to length 1, in float64, then kept as float32."""
    vector = np.array(values, dtype=np.float64)
    # In the order of the dimensions, as the contract asks; `np.sum` adds in pairs.
    norm = math.sqrt(float(np.cumsum(vector * vector)[-1]))
    return (vector / norm if norm else vector).astype(np.float32)


def fnv1a(data: bytes) -> int:
    """FNV-1a, 32 bit."""
    value = _FNV_OFFSET
    for byte in data:
        value = (value ^ byte) * _FNV_PRIME & 0xFFFFFFFF
    return value


_CACHED_LENGTH = 64
"""Characters of the longest feature that is kept; a term may be as long as a document."""


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
        return unit(counts)


class RemoteEmbedder:
    """OpenAI's embeddings, and all services that speak like them.

    Called from worker threads; the requests themselves are made on the event loop.
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
            # Left out, the vendor's client asks for base64, which not every service speaks.
            encoding_format="float",
        )
        rows = [item.embedding for item in sorted(answer.data, key=lambda item: item.index)]
        if len(rows) != len(texts) or len({len(row) for row in rows}) != 1 or not rows[0]:
            raise self._silence_timeout.failed(
                f"{len(rows)} embeddings came for {len(texts)} texts"
            )
        vectors = [unit(row) for row in rows]
        if not all(np.isfinite(vector).all() for vector in vectors):
            raise self._silence_timeout.failed("an embedding holds numbers that are not finite")
        return vectors
