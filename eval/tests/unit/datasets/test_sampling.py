"""Which queries of a benchmark are chosen."""

import hashlib
import json
import os
from collections import Counter
from pathlib import Path

import pytest

from memconform.datasets.haystacks import Haystack, Item
from memconform.datasets.question import Question
from memconform.datasets.sampling import (
    Holdout,
    QuerySelection,
    jeffs_brain_sample,
    sample_queries,
    select_queries,
)
from memconform.errors import NothingSelectedError, UsageError

_CHECKOUT = Path(__file__).parents[4]
_DATA = Path(os.environ.get("MEMCONFORM_DATA", _CHECKOUT.parent / "shared" / "data"))
_ORACLE = _DATA / "longmemeval" / "longmemeval_oracle.json"


def _haystacks(*sizes: int, categories: str = "a") -> list[Haystack]:
    """Queries q0, q1, … over haystacks of these sizes; categories take turns."""
    haystacks: list[Haystack] = []
    number = 0
    for size in sizes:
        queries = tuple(
            Question(f"q{n}", "?", categories[n % len(categories)], ("i",))
            for n in range(number, number + size)
        )
        number += size
        haystacks.append(Haystack(f"h{len(haystacks)}", (Item("i", "x"),), queries))
    return haystacks


def _numbers(chosen: frozenset[str]) -> list[int]:
    return sorted(int(name.removeprefix("q")) for name in chosen)


def test_everything_is_chosen_unless_narrowed() -> None:
    assert _numbers(sample_queries(_haystacks(2, 3), QuerySelection())) == [0, 1, 2, 3, 4]


def test_a_limit_is_spread_over_all_haystacks_and_not_the_head() -> None:
    assert _numbers(sample_queries(_haystacks(4, 6), QuerySelection(limit=4))) == [0, 2, 5, 7]
    assert len(sample_queries(_haystacks(3), QuerySelection(limit=5))) == 3


def test_ids_and_categories_narrow_together() -> None:
    haystacks = _haystacks(6, categories="ab")
    selection = QuerySelection(ids=("q1", "q2", "q3"), categories=("b",))
    assert _numbers(sample_queries(haystacks, selection)) == [1, 3]


@pytest.mark.parametrize(
    ("holdout", "numbers"),
    [("held", [9, 19]), ("tune", [n for n in range(25) if n not in {9, 19}])],
)
def test_the_holdout_is_every_tenth_of_the_load(holdout: Holdout, numbers: list[int]) -> None:
    assert _numbers(sample_queries(_haystacks(5, 20), QuerySelection(holdout=holdout))) == numbers


def test_the_holdout_does_not_move_when_something_else_narrows_too() -> None:
    haystacks = _haystacks(40, categories="ab")
    selection = QuerySelection(holdout="held", categories=("b",), limit=2)
    assert _numbers(sample_queries(haystacks, selection)) == [9, 29]
    selection = QuerySelection(holdout="tune", ids=("q8", "q9"))
    assert _numbers(sample_queries(haystacks, selection)) == [8]


def test_a_sample_has_of_each_category_its_share_and_the_largest_remainder_rounds_up() -> None:
    # Of 10: a 5, b 3, c 2. A sample of 4 has shares 2, 1.2 and 0.8.
    haystacks = _haystacks(10, categories="aaaaabbbcc")
    queries = {query.id: query.category for query in haystacks[0].queries}
    for seed in range(20):
        chosen = sample_queries(haystacks, QuerySelection(sample=4, seed=seed))
        assert Counter(queries[name] for name in chosen) == {"a": 2, "b": 1, "c": 1}


@pytest.mark.parametrize("size", range(1, 24))
def test_a_sample_is_as_large_as_it_should_be(size: int) -> None:
    haystacks = _haystacks(23, categories="aaabbcd")
    assert len(sample_queries(haystacks, QuerySelection(sample=size))) == size


def test_a_sample_depends_on_the_seed_and_not_on_the_order_of_the_file() -> None:
    [haystack] = _haystacks(50, categories="abc")
    turned = Haystack(haystack.id, haystack.items, haystack.queries[::-1])
    samples = [
        sample_queries([haystack], QuerySelection(sample=10, seed=seed)) for seed in range(5)
    ]
    assert len(set(samples)) == 5
    assert samples == [
        sample_queries([turned], QuerySelection(sample=10, seed=s)) for s in range(5)
    ]


def test_a_sample_is_drawn_the_same_in_every_release() -> None:
    chosen = sample_queries(_haystacks(30, categories="ab"), QuerySelection(sample=5, seed=7))
    assert _numbers(chosen) == [1, 2, 3, 6, 26]


def test_a_sample_is_of_what_the_rest_leaves() -> None:
    haystacks = _haystacks(100, categories="ab")
    chosen = sample_queries(haystacks, QuerySelection(sample=3, holdout="held", categories=("b",)))
    assert len(chosen) == 3
    assert {number % 10 for number in _numbers(chosen)} == {9}


@pytest.mark.parametrize(
    ("selection", "says", "hint"),
    [
        (QuerySelection(ids=("q1", "q44")), "no question 'q44'", "did you mean 'q4'?"),
        (QuerySelection(ids=("zzz",)), "no question 'zzz'", "the ids that the loader assigns"),
        (QuerySelection(categories=("temporal",)), "no category 'temporal'", "there are a, b"),
        (QuerySelection(limit=2, sample=2), "contradict", "--limit"),
        (QuerySelection(sample=11), "a sample of 11 cannot be drawn from 10", "draw 10"),
        (QuerySelection(sample=0), "a sample of 0 selects nothing", "--sample 1"),
        (QuerySelection(limit=-1), "a limit of -1 selects nothing", "--limit 1"),
    ],
)
def test_a_selection_that_cannot_be_is_refused(
    selection: QuerySelection, says: str, hint: str
) -> None:
    with pytest.raises(UsageError) as error:
        sample_queries(_haystacks(4, 6, categories="ab"), selection)
    assert says in error.value.message
    assert hint in error.value.hint


@pytest.mark.parametrize(
    "selection",
    [QuerySelection(holdout="held"), QuerySelection(ids=("q1",), categories=("a",))],
)
def test_nothing_left_is_an_error(selection: QuerySelection) -> None:
    with pytest.raises(NothingSelectedError, match="9 questions"):
        sample_queries(_haystacks(9, categories="ab"), selection)


_SYNTHETIC = {
    f"q{n}": "aabcbbadac"[n % 10] + ("x" if n % 7 == 0 else "") for n in range(60)
}  # fmt: skip


@pytest.mark.parametrize(
    ("seed", "size", "ids"),
    [
        (42, 10, "1 58 51 21 4 25 2 53 9 17"),
        (0, 7, "46 30 28 45 34 13 57"),
        (7, 24, "18 48 36 6 8 38 46 40 0 21 55 52 5 12 2 24 14 13 19 59 43 23 37 27"),
        (2**63 - 1, 5, "36 18 4 23 27"),
    ],
)
def test_the_sample_of_jeffs_brain_is_that_of_its_own_sampler(
    seed: int, size: int, ids: str
) -> None:
    """Printed by `lme.Dataset.Sample` of jeffs-brain/memory 22a586e, built from go/eval/lme."""
    expected = [f"q{number}" for number in ids.split()]
    assert jeffs_brain_sample(_SYNTHETIC, size, seed) == expected


def test_the_sample_of_jeffs_brain_depends_on_the_order_of_the_file_and_ours_does_not() -> None:
    backwards = dict(reversed(_SYNTHETIC.items()))
    assert set(jeffs_brain_sample(backwards, 10, 42)) != set(jeffs_brain_sample(_SYNTHETIC, 10, 42))
    selection = QuerySelection(sample=10, seed=42)
    assert select_queries(backwards, selection) == select_queries(_SYNTHETIC, selection)


def test_a_sample_of_jeffs_brain_is_never_smaller_than_asked_for() -> None:
    assert jeffs_brain_sample(_SYNTHETIC, 60, 42) == list(_SYNTHETIC)
    with pytest.raises(UsageError, match="a sample of 61 cannot be drawn from 60 questions"):
        jeffs_brain_sample(_SYNTHETIC, 61, 42)


@pytest.mark.skipif(not _ORACLE.is_file(), reason="the public files are not in $MEMCONFORM_DATA")
@pytest.mark.parametrize(
    ("seed", "size", "digest"),
    [
        (42, 50, "f77565e3723a38563f7a48c0e27a78077d2c97215ca61740fb68a873765aeff2"),
        (0, 50, "a140e01589f8f40b3dc5d242662e53aea3e11d73045613433bc724366d0f53d0"),
        (1, 100, "12e658588de7137148eab2eb373023ad7b4625e12c1ceff36d6f922e56c3bc24"),
        (7, 20, "30998efcee23dcc5857cac99d341491ae877658757bad5a39513ca27626dfb94"),
        (2026, 1, "1849fb0176148fa049c6401c5b6c90d7cd51ee2271d9840b9c7e9b7ff76e0d65"),
        (42, 499, "d746f53f52876ed7bad9c9daccbdbe8ef78c651e32276175be6fd937199a16c8"),
    ],
)
def test_samples_of_the_public_oracle_file_are_those_of_jeffs_brain(
    seed: int, size: int, digest: str
) -> None:
    """Digests of the ids, one a line, as `lme.Dataset.Sample` of 22a586e draws them."""
    rows = json.loads(_ORACLE.read_text())
    categories = {row["question_id"]: row["question_type"] for row in rows}
    ids = jeffs_brain_sample(categories, size, seed)
    assert hashlib.sha256("\n".join(ids).encode()).hexdigest() == digest
