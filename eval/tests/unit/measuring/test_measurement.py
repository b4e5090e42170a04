"""The loop that asks and verifies, and what counts of what it yields."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from memconform.ingest.records import IndexInvalidated, IndexVerified
from memconform.ingest.verification import IndexChangedError
from memconform.measuring.engine import Measurement
from memconform.measuring.validity import Place, Validity
from memconform.records import Failure

_LOST = Failure(code="brain_changed", message="a document is gone")


def _measurement(verdicts: list[bool], *, concurrency: int = 1) -> Measurement[int, int]:
    """One whose verifications end with these verdicts, in turn."""

    async def ask(trial: int) -> int:
        await asyncio.sleep(0)
        return trial

    async def verify() -> None:
        if not verdicts.pop(0):
            raise IndexChangedError(_LOST.message, code=_LOST.code)

    return Measurement(
        ask=ask,
        verify=verify,
        concurrency=concurrency,
        verify_every=2,
        scope=IndexVerified(system="s", haystack="h", strategies=["bm25"]),
    )


async def _yielded(events: AsyncGenerator[Any, None]) -> tuple[list[Any], BaseException | None]:
    """What came, statements by their stage, and the error that ended it."""
    found: list[Any] = []
    try:
        async for each in events:
            found += [each if isinstance(each, int) else each.stage]
    except IndexChangedError as error:
        return found, error
    return found, None


async def test_an_index_is_verified_after_so_many_trials_and_at_the_end() -> None:
    measured = _measurement([True, True]).run([iter([1, 2]), iter([3])])
    assert await _yielded(measured) == ([1, 2, "proved", 3, "proved"], None)


async def test_an_index_is_verified_even_if_nothing_is_asked() -> None:
    assert await _yielded(_measurement([True]).run([])) == (["proved"], None)


async def test_a_changed_index_is_stated_before_the_error() -> None:
    found, error = await _yielded(_measurement([True, False]).run([iter([1, 2, 3, 4, 5])]))
    assert found == [1, 2, "proved", 3, 4, "spoilt"]
    assert isinstance(error, IndexChangedError)


async def test_trials_of_two_batches_never_overlap() -> None:
    running: set[str] = set()
    together: set[frozenset[str]] = set()

    async def ask(trial: str) -> str:
        running.add(trial)
        for _ in range(3):
            together.add(frozenset(each[0] for each in running))
            await asyncio.sleep(0)
        running.discard(trial)
        return trial

    async def verify() -> None:
        assert not running

    measurement = Measurement(
        ask=ask, verify=verify, concurrency=3, verify_every=100, scope=IndexVerified()
    )
    batches = [iter([f"{batch}{n}" for n in range(5)]) for batch in "ab"]
    found = [each async for each in measurement.run(batches) if isinstance(each, str)]
    assert sorted(found) == sorted(f"{batch}{n}" for batch in "ab" for n in range(5))
    assert together == {frozenset("a"), frozenset("b")}


@pytest.mark.parametrize("is_lost", [False, True])
async def test_who_states_what_follows_is_verified_once_at_the_end(is_lost: bool) -> None:  # noqa: FBT001 - a case
    """A run verifies beside its questions, and its journal names attempts by number."""
    verified: list[int] = []

    async def ask(trial: int) -> int:
        return trial

    async def verify() -> None:
        verified.append(1)
        if is_lost:
            raise IndexChangedError(_LOST.message, code=_LOST.code)

    measured = Measurement(ask=ask, verify=verify, concurrency=1).run([iter(range(5))])
    found, error = await _yielded(measured)
    assert (found, len(verified)) == ([0, 1, 2, 3, 4], 1)
    assert (error is not None) == is_lost


_PLACES = {
    "1": Place("go", "h", "bm25"),
    "2": Place("go", "h", "hybrid"),
    "3": Place("go", "other", "bm25"),
    "4": Place("py", "h", "bm25"),
}


@pytest.mark.parametrize(
    ("statement", "concerned"),
    [
        ({"system": "go"}, "123"),
        ({"system": "go", "haystack": "h"}, "12"),
        ({"system": "go", "haystack": "h", "strategies": ["hybrid"]}, "2"),
        ({"system": "py", "haystack": "other"}, ""),
        ({}, ""),
    ],
)
def test_a_statement_concerns_its_index_and_mode_alone(
    statement: dict[str, Any], concerned: str
) -> None:
    validity = Validity[str]()
    for key, place in _PLACES.items():
        validity.add(key, place)
    validity.apply(IndexVerified(**statement))
    assert {key for key in _PLACES if validity.counts(key)} == set(concerned)
    validity.apply(IndexVerified(system="go"))
    validity.apply(IndexVerified(system="py"))
    assert all(map(validity.counts, _PLACES))
    validity.apply(IndexInvalidated(**statement, error=_LOST))
    lost = {key for key in _PLACES if validity.failure(key) == _LOST}
    assert lost == set(concerned)


def test_what_follows_a_statement_is_open_again() -> None:
    validity = Validity[str]()
    validity.add("1", Place())
    validity.apply(IndexVerified())
    validity.add("2", Place())
    assert [validity.counts(key) for key in ("1", "2", "3")] == [True, False, False]
    open_failure = validity.failure("2")
    assert open_failure is not None
    assert open_failure.code == "index_not_proven"
    # Measured anew, the first is open again, too.
    validity.add("1", Place())
    assert not validity.counts("1")


def test_a_new_index_leaves_open_what_was_not_verified_in_the_old_one() -> None:
    validity = Validity[str]()
    for key, place in _PLACES.items():
        validity.add(key, place)
    validity.replace_index("go", "h")
    validity.apply(IndexVerified(system="go"))
    assert {key for key in _PLACES if validity.counts(key)} == {"3"}
