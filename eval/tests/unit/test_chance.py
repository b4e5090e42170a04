"""The level of chance beside counted draws."""

from itertools import combinations

import pytest

from memconform.bench.chance import chance_levels, chance_of_all, chance_of_any
from memconform.bench.records import QueryRecord, Relevance
from memconform.bench.tasks import ALL, OFFICIAL, QueryPlanner, Task
from memconform.datasets.haystacks import Haystack, Item
from memconform.datasets.model import Question


@pytest.mark.parametrize("items", [1, 4, 7])
@pytest.mark.parametrize("relevant", [0, 1, 3])
@pytest.mark.parametrize("k", [1, 2, 5, 10])
def test_the_chance_is_the_share_of_all_draws(items: int, relevant: int, k: int) -> None:
    relevant = min(relevant, items)
    gold = set(range(relevant))
    draws = [set(draw) for draw in combinations(range(items), min(k, items))]
    any_ = sum(bool(draw & gold) for draw in draws) / len(draws)
    every = sum(gold <= draw for draw in draws) / len(draws)
    assert chance_of_any(items, relevant, relevant, k) == pytest.approx(any_)
    assert chance_of_all(items, relevant, relevant, k) == pytest.approx(every)
    # Gold that no item has is never found.
    assert chance_of_all(items, relevant, relevant + 1, k) == 0


def _record(items: int | None, found: int | None, gold: int) -> QueryRecord:
    relevance = Relevance(gold=[str(n) for n in range(gold)], searched_gold=found)
    return QueryRecord(
        system="go",
        strategy="bm25",
        haystack="h",
        query=f"q{items}-{gold}",
        category="c",
        views={ALL: relevance},
        searched=items,
        ranking=[],
        latency_ms=1,
        search_ms=None,
    )


def test_levels_are_means_over_queries() -> None:
    [level] = chance_levels([_record(10, 1, 1), _record(2, 2, 2)], [1, 5]).values()
    assert level.metrics == pytest.approx(
        {"recall_any@1": 55, "recall_any@5": 75, "recall_all@1": 5, "recall_all@5": 75}
    )
    assert not level.every_item_relevant
    [level] = chance_levels([_record(3, 3, 3), _record(2, 2, 2)], [1]).values()
    assert level.every_item_relevant
    assert level.metrics["recall_any@1"] == 100


def test_records_of_earlier_versions_have_no_level() -> None:
    assert chance_levels([_record(10, 1, 1), _record(None, None, 1)], [1]) == {}
    assert chance_levels([], [1]) == {}


def test_the_searched_items_of_a_task_are_those_of_its_haystack_or_its_candidates() -> None:
    query = Question("q", "What?", gold=("a", "nowhere"))
    haystack = Haystack("h", (Item("a", "x"), Item("b", "y")), (query,))
    planner = QueryPlanner(frozenset({"q"}), depth=2, official_gold=lambda _: ("a", "b"))
    [task] = planner.tasks(haystack)
    assert task.searched == frozenset({"a", "b"})
    views = task.views(["b"])
    assert (views[ALL].searched_gold, views[OFFICIAL].searched_gold) == (1, 2)
    task = Task("h", query, {ALL: ("a",)}, {}, 2, frozenset({"b"}), frozenset({"b"}))
    assert task.views([])[ALL].searched_gold == 0
