"""`fh256-1`, the `fake` embedder: signed feature hashing."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, pairwise

import numpy as np

from memoryd.embed.embed import Vector, normalize
from memoryd.text.terms import terms

_FNV_OFFSET = 0x811C9DC5

_FNV_PRIME = 0x01000193


def fnv1a(data: bytes) -> int:
    """32-bit FNV-1a."""
    value = _FNV_OFFSET
    for byte in data:
        value = (value ^ byte) * _FNV_PRIME & 0xFFFFFFFF
    return value


_CACHED_LENGTH = 64
"""Characters of the longest feature that is cached; a term may be as long as a document."""


@lru_cache(maxsize=1 << 16)
def _cached_bucket(feature: str) -> int:
    return _bucket(feature)


def _bucket(feature: str) -> int:
    """The dimension that a feature adds 1 to, or 256 more than that from which it takes 1."""
    value = fnv1a(feature.encode())
    return value & 0xFF | value >> 31 << 8


FEATURE_HASH = "fh256-1"
"""A test double: its vectors know no meanings."""


class FeatureHash:
    """`fh256-1`: signed feature hashing of terms and adjacent pairs of terms."""

    name = model = FEATURE_HASH

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [self._one(text) for text in texts]

    def _one(self, text: str) -> Vector:
        words = terms(text)
        buckets = [
            _cached_bucket(feature) if len(feature) <= _CACHED_LENGTH else _bucket(feature)
            for feature in chain(words, map(" ".join, pairwise(words)))
        ]
        added, taken = np.bincount(np.array(buckets, np.int64), minlength=512).reshape(2, 256)
        return normalize(added - taken)
