"""Vector search is exact although it rules out slots beforehand."""

import math
from fractions import Fraction

import numpy as np
import pytest

from memoryd.embed.embed import Vector, normalize
from memoryd.index.matrix import Slots, VectorMatrix
from memoryd.index.path_order import PathOrder

_RANDOM = np.random.default_rng(7)


def _table(vectors: list[Vector]) -> VectorMatrix:
    table = VectorMatrix()
    # In pieces, so that it grows.
    for first in range(0, len(vectors), 150):
        table.put(first, np.stack(vectors[first : first + 150]))
    return table


def _dot(a: Vector, b: Vector) -> float:
    """The dot product that the contract defines: float64, in the order of the dimensions."""
    total = 0.0
    for x, y in zip(a.tolist(), b.tolist(), strict=True):
        total += x * y
    return total


def _units(count: int, dimensions: int) -> list[Vector]:
    return [normalize(_RANDOM.standard_normal(dimensions).tolist()) for _ in range(count)]


def _near(vector: Vector, count: int, by: float) -> list[Vector]:
    """Vectors whose dot products float32 cannot tell apart."""
    noise = _RANDOM.standard_normal((count, len(vector))) * by
    return [normalize((vector + each).tolist()) for each in noise]


def _all(count: int) -> Slots:
    return np.arange(count, dtype=np.int64)


@pytest.mark.parametrize("dimensions", [1, 3, 256, 384, 1024])
def test_dot_products_are_summed_in_the_order_of_the_dimensions(dimensions: int) -> None:
    vectors = _units(20, dimensions)
    [query] = _units(1, dimensions)
    query[::3] = 0
    table = _table(vectors)
    for slots in ([0, 3, 19], [17], list(range(19)), []):
        dots = table.dots(query, np.array(slots, dtype=np.int64))
        assert dots.tolist() == [_dot(query, vectors[slot]) for slot in slots]


@pytest.mark.parametrize("limit", [1, 7, 50])
@pytest.mark.parametrize("by", [0.0, 1e-8, 1e-6, 1e-3, 1.0])
def test_contenders_include_the_best(limit: int, by: float) -> None:
    [query] = _units(1, 384)
    vectors = _near(normalize(_RANDOM.standard_normal(384).tolist()), 400, by) + _units(400, 384)
    table = _table(vectors)
    scores = np.floor(np.array([_dot(query, v) for v in vectors]) * 1e9 + 0.5)
    slots = np.flatnonzero(_RANDOM.random(800) < 0.7)
    last = np.sort(scores[slots])[-limit]
    contenders = set(table.contenders(query, slots, limit).tolist())
    assert (
        {int(slot) for slot in slots if scores[slot] >= last} <= contenders <= set(slots.tolist())
    )


def test_contenders_exclude_slots_far_from_the_best() -> None:
    vectors = _units(2_000, 384)
    assert len(_table(vectors).contenders(vectors[5], _all(2_000), 10)) < 30


def test_the_error_bound_exceeds_the_error_of_blas() -> None:
    for dimensions in (8, 384, 3072):
        vectors = _units(50, dimensions)
        [query] = _units(1, dimensions)
        sums = np.stack(vectors) @ query
        for vector, total in zip(vectors, sums.tolist(), strict=True):
            exact = sum(
                Fraction(x) * Fraction(y)
                for x, y in zip(vector.tolist(), query.tolist(), strict=True)
            )
            assert abs(Fraction(total) - exact) < dimensions * 2.0**-24
            assert math.isclose(float(exact), _dot(query, vector), abs_tol=1e-12)


def test_a_prefix_is_compared_by_bytes() -> None:
    paths = ["b", "a/1", "a/", "a", "a0", "ab", "ä", "a/\uffff", "a/\U0010ffff", "a/z", "A/1"]
    order = PathOrder((path, range(2 * n, 2 * n + 2)) for n, path in enumerate(paths))
    for prefix in ("", "a", "a/", "a/1", "a/\U0010ffff", "ä", "c", "a/zz", "%", "a_"):
        found = order.starting_with(prefix).tolist()
        matching = sorted((path.encode(), n) for n, path in enumerate(paths))
        assert found == [
            slot
            for path, n in matching
            if path.startswith(prefix.encode())
            for slot in (2 * n, 2 * n + 1)
        ]
    assert PathOrder([]).starting_with("").tolist() == []
