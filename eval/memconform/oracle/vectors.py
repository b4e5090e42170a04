"""The embedder `fh256-1` and the cosine (core.rank.feature-hash, core.rank.semantic). Pure."""

import math
import struct
from functools import lru_cache
from itertools import pairwise

from memconform.contract.terms import terms

DIMENSIONS = 256

Vector = dict[int, float]
"""The components that are not zero, in the order of the dimensions."""


def fnv1a(data: bytes) -> int:
    """32-bit FNV-1a."""
    value = 0x811C9DC5
    for byte in data:
        value = (value ^ byte) * 0x01000193 % 2**32
    return value


_hash = lru_cache(maxsize=1 << 15)(fnv1a)


@lru_cache(maxsize=1 << 12)
def _embed(text: str) -> tuple[tuple[int, float], ...]:
    words = terms(text)
    counts: dict[int, int] = {}
    for feature in (*words, *(f"{a} {b}" for a, b in pairwise(words))):
        value = _hash(feature.encode())
        index = value & 255
        counts[index] = counts.get(index, 0) + (-1 if value >> 31 else 1)
    ordered = [(index, counts[index]) for index in sorted(counts) if counts[index]]
    square = 0.0
    for _, count in ordered:
        square += float(count * count)
    if not ordered:
        return ()
    length = math.sqrt(square)
    return tuple((index, _float32(count / length)) for index, count in ordered)


def embed(text: str) -> Vector:
    """Return the vector of a text, of length 1 or zero, as it is stored in float32."""
    return dict(_embed(text))


def _float32(value: float) -> float:
    stored: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return stored


def cosine(one: Vector, two: Vector) -> float:
    """Sum the products in float64, in the order of the dimensions; zeros add nothing."""
    total = 0.0
    for index, value in one.items():
        if index in two:
            total += value * two[index]
    return total
