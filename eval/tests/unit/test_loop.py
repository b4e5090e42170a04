"""The loop of runs and benches."""

import asyncio
from collections.abc import Iterator
from contextlib import aclosing

import pytest

from memconform.runs.loop import work_through


async def _double(item: int) -> int:
    await asyncio.sleep(0)
    return 2 * item


@pytest.mark.parametrize("concurrency", [1, 3, 16])
async def test_every_item_has_its_result(concurrency: int) -> None:
    results = [each async for each in work_through(iter(range(10)), _double, concurrency)]
    assert sorted(results) == [2 * n for n in range(10)]


@pytest.mark.parametrize("concurrency", [1, 2])
async def test_between_two_results_nothing_is_begun_by_whoever_was_done(concurrency: int) -> None:
    """Of a bench one query in a hundred was put while the index was proven."""
    begun = 0

    async def work(item: int) -> int:
        nonlocal begun
        begun += 1
        return await _double(item)

    taken = 0
    async with aclosing(work_through(iter(range(12)), work, concurrency)) as results:
        async for _ in results:
            taken += 1
            for _ in range(10):
                await asyncio.sleep(0)
            assert begun <= taken - 1 + concurrency


async def test_the_first_error_ends_it_once_earlier_results_were_taken() -> None:
    async def work(item: int) -> int:
        if item == 3:
            raise ZeroDivisionError
        return await _double(item)

    async with aclosing(work_through(iter(range(9)), work, 1)) as results:
        assert [await anext(results) for _ in range(3)] == [0, 2, 4]
        with pytest.raises(ZeroDivisionError):
            await anext(results)


async def test_what_is_in_work_is_cancelled_with_it() -> None:
    cancelled = 0

    async def work(item: int) -> int:
        nonlocal cancelled
        if item:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                cancelled += 1
                raise
        return item

    async with aclosing(work_through(iter(range(4)), work, 3)) as results:
        assert await anext(results) == 0
    assert cancelled == 2


async def test_items_are_taken_as_there_is_room() -> None:
    """A halted run takes no more of them."""
    taken = 0

    def items() -> Iterator[int]:
        nonlocal taken
        for item in range(5):
            taken += 1
            yield item

    async with aclosing(work_through(items(), _double, 2)) as results:
        await anext(results)
        assert taken == 2
