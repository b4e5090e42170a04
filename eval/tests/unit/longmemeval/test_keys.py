"""Items with keys of their own, from a cache file."""

import json
from pathlib import Path
from typing import Any

import pytest

from memconform.datasets.haystacks import Haystack, Item
from memconform.datasets.question import Question
from memconform.errors import UsageError
from memconform.longmemeval.keys import Keys, expand, expanded, read_keys
from memconform.longmemeval.names import Join


def _haystack(name: str = "h", *items: Item) -> Haystack:
    own = items or (Item("a", "text of a", "g", "May", {"k": 1}), Item("b", "text of b"))
    return Haystack(name, own, (Question(f"{name}?", "?", "c", (own[0].id,)),))


def _keys(tmp_path: Path, content: Any) -> Keys:
    path = tmp_path / "cache.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return read_keys(path)


def _texts(haystack: Haystack) -> list[tuple[str, str]]:
    return [(item.id, item.text) for item in haystack.items]


_B = ("b", "text of b")


@pytest.mark.parametrize(
    ("join", "items"),
    [
        ("separate", [("a", "text of a"), ("a#1", "one"), ("a#2", "two"), _B]),
        ("merge", [("a", "one\ntwo\ntext of a"), _B]),
        ("replace", [("a", "one\ntwo"), _B]),
    ],
)
def test_keys_are_joined_and_items_without_keys_are_reported(
    tmp_path: Path, join: Join, items: list[tuple[str, str]]
) -> None:
    before = _haystack()
    after = expand(before, _keys(tmp_path, {"h/a": ["one", " two "]}), join)
    assert _texts(after) == items
    assert [(entry.id, entry.why) for entry in after.dropped] == [
        ("b", "cache.json has no key for it")
    ]
    assert after.queries == before.queries
    assert _texts(before) == [("a", "text of a"), _B]


@pytest.mark.parametrize(
    ("key", "parts"),
    [
        # A list is what the model made of it; a text has phrases, or sentences.
        (["one. And more; more", "two"], ["one. And more; more", "two"]),
        (["one. And more"], ["one. And more"]),
        ("one; two;", ["one", "two"]),
        ("One. Two!", ["One.", "Two!"]),
        (";", [";"]),
    ],
)
def test_the_parts_of_a_key_are_joined_one_by_one(
    tmp_path: Path, key: Any, parts: list[str]
) -> None:
    keys = _keys(tmp_path, {"a": key, "b": None})

    def joined(join: Join) -> list[tuple[str, str]]:
        haystack = expand(_haystack(), keys, join)
        assert [item.source for item in haystack.items if "#" in item.id] == ["a"] * (
            len(haystack.items) - 2
        )
        return _texts(haystack)[:-1]

    numbered = [(f"a#{n}", part) for n, part in enumerate(parts, start=1)]
    assert joined("split-separate") == [("a", "text of a"), *numbered]
    ids = ["a", *(f"a#{n}" for n in range(2, len(parts) + 1))]
    assert joined("split-replace") == list(zip(ids, parts, strict=True))
    merged = [f"{part} text of a" for part in parts]
    assert joined("split-merge") == list(zip(ids, merged, strict=True))


def test_a_separate_key_stands_for_its_item(tmp_path: Path) -> None:
    [item, key, _] = expand(_haystack(), _keys(tmp_path, {"a": "one"}), "separate").items
    assert (item.source, key.source) == ("", "a")
    assert (key.group, key.date, key.metadata) == (item.group, item.date, item.metadata)


@pytest.mark.parametrize("nothing", [None, "", [], ["", " "]])
def test_an_empty_key_is_ignored(tmp_path: Path, nothing: Any) -> None:
    after = expand(_haystack(), _keys(tmp_path, {"a": nothing, "b": "x"}), "replace")
    assert _texts(after) == [("a", "text of a"), ("b", "x")]
    assert [entry.id for entry in after.dropped] == ["a"]


def test_the_cache_of_longmemeval_has_evidence_without_its_mark(tmp_path: Path) -> None:
    haystack = _haystack("q", Item("answer_1_2", "x"), Item("sharegpt_1", "y"))
    keys = _keys(tmp_path, {"1_2": ["a fact"], "sharegpt_1": 7})
    assert _texts(expand(haystack, keys, "replace")) == [
        ("answer_1_2", "a fact"),
        ("sharegpt_1", "7"),
    ]


def test_the_name_with_the_haystack_goes_first(tmp_path: Path) -> None:
    keys = _keys(tmp_path, {"h/a": "mine", "a": "of all"})
    texts = [
        _texts(haystack)[0] for haystack in expanded([_haystack(), _haystack("i")], keys, "replace")
    ]
    assert texts == [("a", "mine"), ("a", "of all")]


def test_an_id_that_means_different_items_is_refused(tmp_path: Path) -> None:
    two = [_haystack("h", Item("D1", "one")), _haystack("i", Item("D1", "two"))]
    with pytest.raises(UsageError, match="'D1' could be an item of h or of i") as error:
        list(expanded(two, _keys(tmp_path, {"D1": "x"}), "merge"))
    assert "write i/D1" in error.value.hint
    assert len(list(expanded(two, _keys(tmp_path, {"h/D1": "x", "i/D1": "y"}), "merge"))) == 2


def test_the_same_session_on_another_date_is_the_same_item(tmp_path: Path) -> None:
    days = [_haystack(day, Item("s", f"[{day}]\nhi", date=day)) for day in ("May", "June")]
    assert len(list(expanded(days, _keys(tmp_path, {"s": "x"}), "merge"))) == 2


def test_a_cache_of_another_benchmark_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="names no item of the benchmark"):
        list(expanded([_haystack()], _keys(tmp_path, {"other/a": "x"}), "merge"))


def test_a_key_does_not_take_the_id_of_another_item(tmp_path: Path) -> None:
    haystack = _haystack("h", Item("a", "x"), Item("a#1", "y"))
    with pytest.raises(UsageError, match="has an item 'a#1'"):
        expand(haystack, _keys(tmp_path, {"a": "k"}), "separate")
    assert len(expand(haystack, _keys(tmp_path, {"a": "k"}), "merge").items) == 2


@pytest.mark.parametrize("bad", [{"a": 1}, True, [["x"]], ["x", None]])
def test_a_key_that_is_not_text_is_reported(tmp_path: Path, bad: Any) -> None:
    with pytest.raises(UsageError, match="'s1' has a key that is not text"):
        _keys(tmp_path, {"s1": bad})


def test_a_cache_that_is_not_an_object_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a JSON object"):
        _keys(tmp_path, [{"a": "x"}])
