"""The concurrent loop that runs and benches share, and slots for what runs at once."""

import asyncio
from collections.abc import Iterator
from contextlib import aclosing

import pytest

from memconform.concurrency import Slots, work_through
from tests.conftest import WAIT_SECONDS


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


async def test_tasks_that_ask_for_all_slots_run_alone() -> None:
    slots = Slots(3)
    running: list[str] = []

    async def work(name: str, *, alone: bool) -> None:
        async with slots.all() if alone else slots:
            running.append(name)
            await asyncio.sleep(0)
            assert len(running) <= (1 if alone else 3)
            running.remove(name)

    # Two that each hold some slots, and wait for the rest, would wait forever.
    async with asyncio.timeout(WAIT_SECONDS):
        await asyncio.gather(*(work(f"{n}", alone=n % 3 == 0) for n in range(20)))
    assert not slots.locked()


async def test_a_task_that_is_cancelled_while_it_waits_for_all_slots_frees_them() -> None:
    slots = Slots(2)
    async with slots:
        waiting = asyncio.create_task(slots.all().__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    async with asyncio.timeout(WAIT_SECONDS), slots.all():
        assert slots.locked()
