"""Tasks that ask for all slots run alone, and never wait for each other."""

import asyncio

from memconform.daemons.tasks import Slots
from tests.conftest import WAIT_SECONDS


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
