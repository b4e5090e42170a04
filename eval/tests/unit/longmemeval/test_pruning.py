"""Items of the time that a query asks about."""

import json
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from memconform.datasets.haystacks import Haystack, Item
from memconform.datasets.question import Question
from memconform.errors import UsageError
from memconform.longmemeval.pruning import Pruning, Range, read_events, read_ranges

_QUERY = Question("q", "?", "c", ("a",))


def _write(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def _pruning(tmp_path: Path, events: Any, ranges: Any) -> Pruning:
    read = read_events(_write(tmp_path / "events.json", events))
    return Pruning(read, read_ranges(_write(tmp_path / "ranges.json", ranges)))


def _haystack(*items: Item) -> Haystack:
    return Haystack("h", items or tuple(Item(name, "x") for name in "abc"), (_QUERY,))


_MAY = {"q": {"start": "2023/05/10", "end": "2023/05/20"}}


def _kept(pruning: Pruning, *items: Item) -> list[str] | None:
    allowed = pruning.candidates(_haystack(*items), _QUERY)
    return None if allowed is None else sorted(allowed)


def _on(*days: str) -> list[dict[str, str]]:
    return [{"date": day, "event": "it rained"} for day in days]


def test_items_without_an_event_in_the_range_are_pruned(tmp_path: Path) -> None:
    events = {"h/a": _on("2023/01/01", "2023/05/15"), "h/b": _on("2023/06/01"), "h/c": []}
    assert _kept(_pruning(tmp_path, events, _MAY)) == ["a"]


@pytest.mark.parametrize(
    ("day", "kept"),
    [("2023/05/07", False), ("2023-05-08", True), ("2023/5/22", True), ("2023/05/23", False)],
)
def test_a_range_is_widened_by_two_days_at_both_ends(
    tmp_path: Path, day: str, *, kept: bool
) -> None:
    pruning = _pruning(tmp_path, {"h/a": _on(day), "h/b": [], "h/c": []}, _MAY)
    assert _kept(pruning) == (["a"] if kept else [])
    exact = Pruning(pruning.events, pruning.ranges, slack=timedelta())
    assert _kept(exact) == []


def test_an_item_that_the_file_does_not_name_is_not_pruned(tmp_path: Path) -> None:
    assert _kept(_pruning(tmp_path, {"h/a": _on("2023/01/01"), "h/b": []}, _MAY)) == ["c"]


@pytest.mark.parametrize("none", [{}, {"q": None}, {"q": {}}, {"q": "N/A"}])
def test_a_query_without_a_range_keeps_all(tmp_path: Path, none: Any) -> None:
    assert _kept(_pruning(tmp_path, {"h/a": _on("2023/05/15")}, none)) is None


def test_turns_have_the_events_of_their_session_and_keys_those_of_their_item(
    tmp_path: Path,
) -> None:
    turns = (
        Item("s1_1", "x", "s1"),
        Item("s1_3", "x", "s1"),
        Item("s2_1", "x", "s2"),
        Item("a#1", "x", source="a"),
        Item("b#1", "x", source="b"),
    )
    events = {"h/s1": _on("2023/05/15"), "h/s2": _on("2023/01/01"), "h/a": _on("2023/05/15")}
    events["h/b"] = _on("2023/02/02")
    pruning = _pruning(tmp_path, events, _MAY)
    assert _kept(pruning, *turns) == ["a#1", "s1_1", "s1_3"]


def test_published_events_are_read_and_invalid_ones_dropped(
    tmp_path: Path,
) -> None:
    row = {
        "question_id": "h",
        "haystack_session_ids": ["a", "b", "c"],
        "timestamped_facts": [
            _on("2023/05/15"),
            None,
            ["rain", {"event": "x"}, *_on("2023/13/01", "May", "2023/05/19")],
        ],
    }
    pruning = _pruning(tmp_path, [row], _MAY)
    # The call for "b" failed, which says nothing about it.
    assert _kept(pruning) == ["a", "b", "c"]
    assert [entry.id for entry in pruning.events.dropped] == ["h/b", *["h/c"] * 4]
    assert pruning.ranges == {"q": Range(date(2023, 5, 10), date(2023, 5, 20))}


def test_a_haystack_of_which_no_call_succeeded_is_not_pruned(tmp_path: Path) -> None:
    """The file names all of its items; it was refused as the file of another benchmark."""
    pruning = _pruning(tmp_path, {f"h/{name}": None for name in "abc"}, _MAY)
    assert _kept(pruning) == ["a", "b", "c"]
    # An item's own null counts, not the days of its session.
    pruning = _pruning(tmp_path, {"h/s1_1": None, "h/s1": _on("2023/01/01")}, _MAY)
    assert _kept(pruning, Item("s1_1", "x", "s1"), Item("s1_3", "x", "s1")) == ["s1_1"]


def test_events_of_another_haystack_do_not_prune_everything(tmp_path: Path) -> None:
    pruning = _pruning(tmp_path, {"a": _on("2023/05/15")}, _MAY)
    with pytest.raises(UsageError, match="names no item of h"):
        pruning.candidates(_haystack(), _QUERY)


def test_a_range_of_an_unknown_question_is_rejected(tmp_path: Path) -> None:
    pruning = _pruning(tmp_path, {}, _MAY)
    pruning.require_known_ids({"q", "r"})
    with pytest.raises(UsageError, match="does not have: 'q'"):
        pruning.require_known_ids({"qq"})


@pytest.mark.parametrize(
    "bad",
    [
        {"start": "2023/05/10"},
        {"start": "2023/05/10", "end": "May"},
        {"start": "2023/05/10", "end": "2023/05/09"},
        {"start": "2023/02/30", "end": "2023/05/09"},
        "last week",
        ["2023/05/10", "2023/05/20"],
    ],
)
def test_an_invalid_range_is_reported(tmp_path: Path, bad: Any) -> None:
    with pytest.raises(UsageError, match="'q7' has an invalid range:"):
        read_ranges(_write(tmp_path / "r.json", {"q7": bad}))


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ({"h/a": "rain"}, "'h/a' must be a list of events"),
        (
            [{"question_id": "h", "haystack_session_ids": []}],
            "element 0: 'timestamped_facts' is missing",
        ),
        ([7], "element 0: is not an object"),
        (
            [{"question_id": "h", "haystack_session_ids": ["a"], "timestamped_facts": []}],
            "element 0: 'timestamped_facts' must have one list per session",
        ),
        ("rain", "is not a JSON object"),
    ],
)
def test_invalid_events_are_reported(tmp_path: Path, bad: Any, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        read_events(_write(tmp_path / "e.json", bad))
