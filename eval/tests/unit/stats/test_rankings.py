"""Likeness of rankings, held to other libraries and to the definitions."""

from itertools import combinations
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from memconform.stats.rankings import jaccard, kendall_tau_b, overlap_at, rbo

_RANKING = st.lists(st.sampled_from("abcdefghijkl"), unique=True, max_size=12)
_SCORES = st.lists(st.integers(0, 4), min_size=2, max_size=10)


@given(_SCORES, st.data())
def test_tau_is_scipys(one: list[int], data: st.DataObject) -> None:
    other = data.draw(st.lists(st.integers(0, 4), min_size=len(one), max_size=len(one)))
    named = [{str(n): float(score) for n, score in enumerate(scores)} for scores in (one, other)]
    theirs = kendalltau(one, other).statistic
    ours = kendall_tau_b(*named)
    assert (ours is None) == (theirs != theirs)  # noqa: PLR0124 - NaN
    if ours is not None:
        assert ours == pytest.approx(theirs)


def test_tau_is_of_the_items_in_both() -> None:
    one, other = {"a": 3.0, "b": 2.0, "x": 9.0}, {"a": 1.0, "b": 2.0, "y": 0.0}
    assert kendall_tau_b(one, other) == -1
    assert kendall_tau_b({"a": 1.0}, {"a": 1.0}) is None


@given(_RANKING, _RANKING)
def test_rbo_is_the_limit_of_its_definition(one: list[str], other: list[str]) -> None:
    """Webber et al.: agreement beyond the longer list stays what it is extrapolated to be."""
    overlap = rbo(one, other)
    assert 0 <= overlap <= 1 + 1e-12
    assert overlap == pytest.approx(rbo(other, one))
    if not one or not other:
        assert overlap == float(one == other)
        return
    short, long = sorted((one, other), key=len)
    s, l = len(short), len(long)  # noqa: E741 - the paper's names
    at_s = len(set(short) & set(long[:s]))
    at_l = len(set(short) & set(long))
    total = 0.0
    for depth in range(1, 2_000):
        if depth <= s:
            agreement = len(set(short[:depth]) & set(long[:depth])) / depth
        elif depth <= l:
            # What the short list would hold there agrees as often as it did so far.
            seen = len(set(short) & set(long[:depth]))
            agreement = (seen + at_s / s * (depth - s)) / depth
        else:
            agreement = (at_l + at_s / s * (l - s)) / l
        total += agreement * 0.1 * 0.9 ** (depth - 1)
    assert overlap == pytest.approx(total, abs=1e-9)


def test_rbo_of_equal_and_of_disjoint_rankings() -> None:
    assert rbo("abc", "abc") == pytest.approx(1)
    assert rbo("abc", "xyz") == 0
    assert rbo("abc", "acb") < rbo("abcdef", "abcdfe")


def test_overlap_and_jaccard() -> None:
    assert overlap_at("abcd", "abxy", 2) == 1
    assert overlap_at("abcd", "abxy", 4) == 0.5
    assert overlap_at("ab", "abcd", 4) == 0.5
    assert overlap_at("", "", 4) == 1
    assert jaccard("abc", "bcd") == 0.5
    assert jaccard("", "") == 1


@given(st.lists(st.tuples(st.floats(-9, 9), st.integers(0, 3)), max_size=40))
def test_tau_is_that_of_its_definition(scores: list[tuple[float, int]]) -> None:
    """Checked over all pairs of items, to the last bit of what numpy computed."""
    one = {str(n): first for n, (first, _) in enumerate(scores)}
    other = {str(n): float(second) for n, (_, second) in enumerate(scores)}
    pairs = list(combinations(one, 2))
    firsts, seconds = (
        [(side[a] > side[b]) - (side[a] < side[b]) for a, b in pairs] for side in (one, other)
    )
    norm = sqrt(sum(map(abs, firsts)) * sum(map(abs, seconds)))
    expected = sum(a * b for a, b in zip(firsts, seconds, strict=True)) / norm if norm else None
    assert kendall_tau_b(one, other) == expected
