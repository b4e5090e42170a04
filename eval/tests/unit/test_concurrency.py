"""The concurrent loop that runs and benches share."""

import asyncio
from collections.abc import Iterator
from contextlib import aclosing

import pytest

from memconform.concurrency import work_through


async def _double(item: int) -> int:
    await asyncio.sleep(0)
    return 2 * item


@pytest.mark.parametrize("concurrency", [1, 3, 16])
async def test_every_item_yields_a_result(concurrency: int) -> None:
    results = [result async for result in work_through(iter(range(10)), _double, concurrency)]
    assert sorted(results) == [2 * n for n in range(10)]


@pytest.mark.parametrize("concurrency", [1, 2])
async def test_a_worker_starts_no_item_before_its_result_was_consumed(concurrency: int) -> None:
    """In a bench, one query in a hundred was once sent while the index was being proven."""
    started = 0

    async def work(item: int) -> int:
        nonlocal started
        started += 1
        return await _double(item)

    taken = 0
    async with aclosing(work_through(iter(range(12)), work, concurrency)) as results:
        async for _ in results:
            taken += 1
            for _ in range(10):
                await asyncio.sleep(0)
            assert started <= taken - 1 + concurrency


async def test_the_first_error_ends_the_loop_after_earlier_results() -> None:
    async def work(item: int) -> int:
        if item == 3:
            raise ZeroDivisionError
        return await _double(item)

    async with aclosing(work_through(iter(range(9)), work, 1)) as results:
        assert [await anext(results) for _ in range(3)] == [0, 2, 4]
        with pytest.raises(ZeroDivisionError):
            await anext(results)


async def test_closing_the_loop_cancels_items_in_progress() -> None:
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


async def test_items_are_consumed_only_as_workers_are_free() -> None:
    """A halted run must not consume more items."""
    taken = 0

    def items() -> Iterator[int]:
        nonlocal taken
        for item in range(5):
            taken += 1
            yield item

    async with aclosing(work_through(items(), _double, 2)) as results:
        await anext(results)
        assert taken == 2
