"""Shards: every unit in exactly one, chosen by every machine alike."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memconform.datasets.sharding import Shard, ShardRecord, deal, join_shards
from memconform.errors import UsageError


@given(st.sets(st.text(), min_size=1), st.integers(1, 9))
def test_every_unit_is_in_one_shard_and_shards_are_of_equal_size(ids: set[str], of: int) -> None:
    if of > len(ids):
        with pytest.raises(UsageError) as caught:
            deal(ids, of, "question")
        assert caught.value.code == "too_many_shards"
        return
    shards = deal(ids, of, "question")
    assert sorted(each for shard in shards for each in shard) == sorted(ids)
    sizes = [len(shard) for shard in shards]
    assert max(sizes) - min(sizes) <= 1


@given(st.permutations([f"q{n}" for n in range(12)]), st.integers(1, 5))
def test_the_order_of_the_ids_does_not_matter(ids: list[str], of: int) -> None:
    assert deal(ids, of, "question") == deal(sorted(ids), of, "question")


def test_another_process_chooses_alike() -> None:
    """Python's own hash of a text is another one in each process."""
    code = "from memconform.datasets.sharding import *; print(sorted(Shard(2, 3).choose("
    code += "map(str, range(20)), 'question')))"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert run.stdout.strip() == str(sorted(Shard(2, 3).choose(map(str, range(20)), "question")))


def test_the_hash_is_the_one_that_results_name() -> None:
    """Parts of two versions of memconform can only be joined if this choice never changes."""
    shards = deal(("a", "b", "c", "d", "e"), 2, "question")
    assert [sorted(shard) for shard in shards] == [["a", "b", "d"], ["c", "e"]]


@pytest.mark.parametrize(
    "text", ["", "1", "0/3", "4/3", "1/0", "-1/3", "1/3 ", "1/3/5", "01/3", "a/b"]
)
def test_a_shard_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a shard"):
        Shard.parse(text)


def test_ids_that_repeat_stay_together() -> None:
    places = [Shard(number, 2).places(["a", "b", "a", "c"], "case") for number in (1, 2)]
    assert sorted(place for own in places for place in own) == [0, 1, 2, 3]
    assert any({0, 2} <= set(own) for own in places)


def _record(*numbers: int, of: int = 3, **more: object) -> ShardRecord:
    return ShardRecord.model_validate({"numbers": numbers, "of": of, "unit": "question", **more})


def test_all_shards_are_the_whole() -> None:
    assert join_shards({"a": _record(2, 3), "b": _record(1)}) is None
    partial = join_shards({"a": _record(3, places=[5]), "b": _record(1, places=[0])}, partial=True)
    assert partial is not None
    assert (partial.numbers, partial.missing, partial.places) == ([1, 3], [2], [0, 5])
    assert partial.label() == "shards 1, 3 of 3"


@pytest.mark.parametrize(
    ("parts", "code"),
    [
        ({"a": _record(1), "b": None}, "not_a_shard"),
        ({"a": _record(1), "b": _record(2, of=4)}, "other_shards"),
        ({"a": _record(1), "b": _record(2, unit="haystack")}, "other_shards"),
        ({"a": _record(1, 2), "b": _record(2, 3)}, "shard_twice"),
        ({"a": _record(1), "b": _record(3)}, "shard_missing"),
    ],
)
def test_shards_that_do_not_fit_are_named(parts: dict[str, ShardRecord | None], code: str) -> None:
    with pytest.raises(UsageError) as caught:
        join_shards(parts)
    assert caught.value.code == code
    assert "a" in caught.value.message.split() or "b" in caught.value.message.split()


@pytest.mark.parametrize("numbers", [[], [2, 1], [1, 1], [0], [4]])
def test_a_record_of_no_shard_is_refused(numbers: list[int]) -> None:
    with pytest.raises(ValueError, match=r"shards|at least 1"):
        ShardRecord(numbers=numbers, of=3, unit="question")
