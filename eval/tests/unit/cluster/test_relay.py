"""Calls of shards reach whoever answers them, however slow the scheduler is."""

import asyncio

import pytest
from distributed import Client, Queue, Scheduler

from memconform.cluster.relay import _calls, served_calls
from tests.conftest import WAIT_SECONDS


class _Server:
    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def answer(self, caller: str, line: bytes) -> bytes:
        assert (caller, line) == ("caller", b"call\n")
        self.asked.set()
        return b"\n"

    def forget(self, caller: str) -> None:
        assert caller == "caller"


async def test_a_queue_is_not_read_before_the_scheduler_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In one of six runs nobody was answered after a worker was killed, until the user gave up."""
    start = Queue._start

    async def start_late(queue: Queue) -> Queue:
        for _ in range(1_000):
            await asyncio.sleep(0)
        return await start(queue)  # type: ignore[no-any-return, no-untyped-call] # of Dask

    monkeypatch.setattr(Queue, "_start", start_late)
    server = _Server()
    async with (
        Scheduler(host="127.0.0.1", port=0, dashboard_address="127.0.0.1:0") as scheduler,
        Client(scheduler.address, asynchronous=True) as client,
    ):
        async with served_calls(client, "run", server), asyncio.timeout(WAIT_SECONDS):
            await _call(client)
            await server.asked.wait()
        while scheduler.extensions["queues"].queues:  # noqa: ASYNC110 - Dask has no event for it
            await asyncio.sleep(0)


@pytest.mark.parametrize("fails", ["an answer", "the queue"])
async def test_shards_do_not_wait_for_answers_that_nobody_gives(
    fails: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error ended the answering unseen, and the shards waited until the user gave up."""

    async def fail(*_: object) -> None:
        raise KeyError(fails)

    server = _Server()
    if fails == "the queue":
        monkeypatch.setattr(Queue, "get", fail)
    else:
        monkeypatch.setattr(server, "answer", fail)
    async with (
        Scheduler(host="127.0.0.1", port=0, dashboard_address="127.0.0.1:0") as scheduler,
        Client(scheduler.address, asynchronous=True) as client,
        asyncio.timeout(WAIT_SECONDS),
    ):
        with pytest.raises(KeyError, match=fails):  # noqa: PT012
            async with served_calls(client, "run", server):
                if fails == "an answer":
                    await _call(client)
                await asyncio.Event().wait()
        while scheduler.extensions["queues"].queues:  # noqa: ASYNC110 - Dask has no event for it
            await asyncio.sleep(0)


async def _call(client: Client) -> None:
    queue = await Queue(_calls("run"), client=client)
    await queue.put(("shard", "caller", 0, b"!call\n"))
    queue.close()
    queue.close()


async def test_what_the_body_raises_keeps_its_cause() -> None:
    async with (
        Scheduler(host="127.0.0.1", port=0, dashboard_address="127.0.0.1:0") as scheduler,
        Client(scheduler.address, asynchronous=True) as client,
    ):
        with pytest.raises(ValueError, match="of the body") as raised:
            async with served_calls(client, "run", _Server()):
                raise ValueError("of the body") from KeyError("its cause")
    assert isinstance(raised.value.__cause__, KeyError)
