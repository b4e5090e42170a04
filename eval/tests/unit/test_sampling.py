"""Which queries of a benchmark are chosen."""

from collections import Counter

import pytest

from memconform.datasets.haystacks import Haystack, Item
from memconform.datasets.model import Question
from memconform.datasets.sampling import Holdout, QuerySelection, sample_queries
from memconform.errors import NothingSelectedError, UsageError


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
