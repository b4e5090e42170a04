"""Requests' worth of numbers: words of one feature, and embeddings with exact cosines."""

import itertools
import math
import random
import struct
from collections.abc import Sequence
from functools import cache

_SPREAD = 2e-5
"""How far an embedding whose cosine exceeds 1 is from the query; rounding to float32 does it."""

_NEAR = 3e-10
"""How exact a cosine must be to be rounded as it should."""


@cache
def _words() -> dict[int, tuple[str, int]]:
    found: dict[int, tuple[str, int]] = {}
    for number in itertools.count():
        word = f"w{number}"
        value = 2166136261
        for byte in word.encode():
            value = (value ^ byte) * 16777619 & 0xFFFFFFFF
        found.setdefault(value & 255, (word, -1 if value >> 31 else 1))
        if len(found) == 256:
            return found
    raise AssertionError


def probe(index: int) -> tuple[str, int]:
    """Return a word whose only feature is at `index`, and its sign."""
    return _words()[index]


def rank_vectors(count: int) -> tuple[list[float], list[list[float]]]:
    """Return a query, and vectors in the order of their cosines with it."""
    return [1.0, 0.0], [[1.0, 0.2 * number] for number in range(count)]


def cosine_vectors(cosines: Sequence[float]) -> tuple[list[float], list[list[float]]]:
    """Return a query, and for each cosine a vector that has it, rounded to 1e-9.

    The query is exact in float32, and the vectors are found by trial: daemons round them.
    """
    query = [0.25] * 16
    return query, [_vector(cosine, query) for cosine in cosines]


def _vector(cosine: float, query: Sequence[float]) -> list[float]:
    generator = random.Random(1)  # noqa: S311 - reproducible numbers, not secrets
    across = math.sqrt(max(0.0, 1 - cosine * cosine))
    while True:
        noise = [generator.gauss() for _ in query]
        mean = sum(noise) / len(noise)
        scale = across / math.hypot(*(part - mean for part in noise))
        raw = [cosine * q + scale * (part - mean) for q, part in zip(query, noise, strict=True)]
        if cosine > 1:  # only rounding makes a cosine that large
            raw = [q + generator.uniform(-_SPREAD, _SPREAD) for q in query]
        length = math.hypot(*raw)
        stored = [struct.unpack("f", struct.pack("f", value / length))[0] for value in raw]
        dot = sum(map(math.prod, zip(stored, query, strict=True)))
        # How far above 1 makes no difference: a distance is at least 0.
        if abs(dot - cosine) < _NEAR or min(dot, cosine) > 1 + 2e-9:
            return raw
