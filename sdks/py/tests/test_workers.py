"""Threads of requests whose clients disconnect."""

import asyncio
import threading
from functools import partial

import pytest

from memoryd.api.workers import Workers

_WAIT_SECONDS = 60


async def test_a_storm_of_disconnects_starts_no_threads_without_bound() -> None:
    workers, go, running = Workers(3), threading.Event(), threading.Semaphore(0)

    def work() -> None:
        running.release()
        assert go.wait(_WAIT_SECONDS)

    before = threading.active_count()
    for _ in range(30):
        task = asyncio.create_task(workers.run(work))
        await asyncio.sleep(0.005)  # short limit: it may be cancelled at any moment
        task.cancel()
        await asyncio.wait([task])
    # Threads of other tests may come and go; without a bound, there are 30 more.
    assert threading.active_count() <= before + 10
    go.set()
    # The slots of the abandoned threads come back.
    async with asyncio.timeout(_WAIT_SECONDS):
        assert await asyncio.gather(*(workers.run(partial(int, n)) for n in range(9))) == [
            *range(9)
        ]


async def test_work_that_is_cancelled_before_it_begins_gives_its_slot_back() -> None:
    workers = Workers(1)
    for _ in range(200):
        task = asyncio.create_task(workers.run(lambda: None))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
    async with asyncio.timeout(_WAIT_SECONDS):
        assert await workers.run(lambda: 7) == 7


async def test_a_failure_of_the_work_is_raised_and_frees_its_slot() -> None:
    workers = Workers(1)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            await workers.run(lambda: 1 // 0)
