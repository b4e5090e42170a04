"""The level of chance beside counted draws."""

from itertools import combinations, permutations

import pytest

from memconform.bench.chance import (
    chance_by_session,
    chance_levels,
    chance_of_all,
    chance_of_any,
)
from memconform.bench.records import QueryRecord, Relevance, SessionSizes
from memconform.bench.tasks import ALL, OFFICIAL, OFFICIAL_SESSIONS, QueryPlanner, Task
from memconform.datasets.haystacks import Haystack, Item
from memconform.datasets.question import Question


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


def test_another_key_of_an_item_is_no_item_to_draw() -> None:
    """With one key each, every session is gold, and chance was half of the 100 that it is."""
    question = Question(id="q", question="?", category="c", gold=("a", "b"))
    items = (
        Item("a", "x"),
        Item("b", "y"),
        Item("a#1", "k", source="a"),
        Item("b#1", "k", source="b"),
    )
    [task] = QueryPlanner(frozenset({"q"}), 5).tasks(Haystack("h", items, (question,)))
    assert task.searched == frozenset({"a", "b"})


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


@pytest.mark.parametrize(
    ("relevant", "other"),
    [([1], [1]), ([3], [1, 2]), ([1, 2], [3, 1]), ([2, 1], []), ([1, 1], [4]), ([1, 1, 2], [2, 1])],
)
def test_the_chance_by_session_is_that_of_all_orders_of_turns(
    relevant: list[int], other: list[int]
) -> None:
    gold = set(range(len(relevant)))
    turns = [session for session, size in enumerate(relevant + other) for _ in range(size)]
    ks = (1, 2, 3, 5)
    orders = [list(dict.fromkeys(order)) for order in permutations(turns)]
    expected = [
        (
            sum(not gold.isdisjoint(order[:k]) for order in orders) / len(orders),
            sum(gold.issubset(order[:k]) for order in orders) / len(orders),
        )
        for k in ks
    ]
    sizes = SessionSizes(relevant=relevant, other=other)
    assert chance_by_session(sizes, len(gold), ks) == [pytest.approx(pair) for pair in expected]
    # A relevant session that is not searched is never found.
    lacking = chance_by_session(sizes, len(gold) + 1, ks)
    assert lacking == [pytest.approx((any_, 0)) for any_, _ in expected]
    assert chance_by_session(SessionSizes(relevant=[], other=other), 1, ks) == [(0, 0)] * 4


def test_sessions_of_one_size_are_drawn_like_items() -> None:
    """Also with as many turns as LongMemEval's haystacks have."""
    sizes = SessionSizes(relevant=[10] * 3, other=[10] * 45)
    ks = (1, 10, 50)
    expected = [(chance_of_any(48, 3, 3, k), chance_of_all(48, 3, 3, k)) for k in ks]
    assert chance_by_session(sizes, 3, ks) == [pytest.approx(pair) for pair in expected]


def test_a_view_by_session_has_the_level_of_its_turns() -> None:
    query = Question("q", "What?", gold=("a1",))
    items = tuple(Item(name, name) for name in ("a1", "a2", "b1", "b2", "b3", "c1"))
    planner = QueryPlanner(
        frozenset({"q"}),
        depth=2,
        official_gold=lambda _: ("a1",),
        # As released: a turn without the answer forms a session of its own.
        official_sessions=lambda _: {
            name: "noans_a" if name == "a2" else name[0] for name in (item.id for item in items)
        },
    )
    [task] = planner.tasks(Haystack("h", items, (query,)))
    views = task.views([])
    assert views[OFFICIAL_SESSIONS].session_sizes == SessionSizes(relevant=[1], other=[1, 1, 3])
    record = _record(6, 1, 1).model_copy(update={"views": views})
    levels = chance_levels([record], [1, 4])
    assert levels[OFFICIAL_SESSIONS].metrics == pytest.approx(
        {"recall_any@1": 100 / 6, "recall_any@4": 100, "recall_all@1": 100 / 6, "recall_all@4": 100}
    )
    assert not levels[OFFICIAL_SESSIONS].every_item_relevant
    views[OFFICIAL_SESSIONS] = views[OFFICIAL_SESSIONS].model_copy(update={"session_sizes": None})
    older = record.model_copy(update={"views": views})
    assert OFFICIAL_SESSIONS not in chance_levels([record, older], [1])
