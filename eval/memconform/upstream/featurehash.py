"""`fh256-1`, an embedding without a model (rule core.rank.feature-hash)."""

import math
from functools import lru_cache
from itertools import pairwise

from memconform.contract.terms import terms

DIMENSIONS = 256


@lru_cache(maxsize=1 << 16)
def _place(feature: str) -> tuple[int, int]:
    """Index and sign of a feature, from its 32-bit FNV-1a hash."""
    value = 0x811C9DC5
    for byte in feature.encode():
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value & 0xFF, -1 if value >> 31 else 1


def feature_hash(text: str) -> list[float]:
    """The unit vector of a text's terms and adjacent pairs; zero for a text without terms."""
    words = terms(text)
    totals = [0] * DIMENSIONS
    for feature in (*words, *map(" ".join, pairwise(words))):
        index, sign = _place(feature)
        totals[index] += sign
    length = math.sqrt(sum(total * total for total in totals))
    return [total / length if length else 0.0 for total in totals]
