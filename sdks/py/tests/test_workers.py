"""Threads of requests whose clients disconnect."""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
from anyio import CapacityLimiter, from_thread
from starlette.requests import Request

from memoryd.api.requests import run_cancellable
from memoryd.embed.openai import OpenAIEmbedder
from memoryd.index.chunk import Chunk
from memoryd.problem import Problem
from memoryd.prompt.prompt import Note
from memoryd.retrieve.retrieve import _rerank
from memoryd.upstream import SilenceTimeout, call_service

T = TypeVar("T")

_WAIT_SECONDS = 60


class _Client:
    """Requests work, and stays until it is told to go."""

    def __init__(self, slots: CapacityLimiter) -> None:
        self._app = SimpleNamespace(state=SimpleNamespace(work_slots=slots))
        self._gone = asyncio.Event()
        self._working = threading.Event()

    async def _receive(self) -> dict[str, Any]:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    def request(self, work: Callable[[], T]) -> "asyncio.Task[T]":
        request = Request({"type": "http", "app": self._app}, self._receive)
        return asyncio.create_task(run_cancellable(request, work))

    def disconnect(self) -> None:
        self._gone.set()

    async def disconnect_during_work(self) -> None:
        """Disconnect once the thread is in `wait_for_disconnect`."""
        assert await asyncio.to_thread(self._working.wait, _WAIT_SECONDS)
        self.disconnect()

    def wait_for_disconnect(self) -> None:
        """Return once the request is cancelled, in whose thread it is called."""
        self._working.set()
        with suppress(asyncio.CancelledError):
            while True:
                from_thread.check_cancelled()
                time.sleep(0.001)  # short limit: it only asks again


async def _ends_as_disconnected(task: "asyncio.Task[Any]") -> None:
    async with asyncio.timeout(_WAIT_SECONDS):
        with pytest.raises(Problem, match="the client has disconnected"):
            await task


async def test_a_storm_of_disconnects_starts_no_threads_without_bound() -> None:
    slots, go = CapacityLimiter(3), threading.Event()

    def work() -> None:
        assert go.wait(_WAIT_SECONDS)

    before, tasks = threading.active_count(), []
    for _ in range(30):
        client = _Client(slots)
        tasks.append(client.request(work))
        await asyncio.sleep(0.005)  # short limit: it may disconnect at any moment
        client.disconnect()
    # Those without a thread end at once.
    for task in tasks[3:]:
        await _ends_as_disconnected(task)
    # Threads of other tests may come and go; without a bound, there are 30 more.
    assert threading.active_count() <= before + 10
    go.set()
    await asyncio.wait(tasks)
    # The slots come back.
    async with asyncio.timeout(_WAIT_SECONDS):
        results = await asyncio.gather(*(_Client(slots).request(partial(int, n)) for n in range(9)))
    assert results == [*range(9)]


async def test_a_thread_keeps_its_slot_until_its_work_ends() -> None:
    slots, go, cancelled = CapacityLimiter(1), threading.Event(), threading.Event()
    client = _Client(slots)

    def work() -> None:
        client.wait_for_disconnect()
        cancelled.set()
        assert go.wait(_WAIT_SECONDS)

    task = client.request(work)
    await client.disconnect_during_work()
    assert await asyncio.to_thread(cancelled.wait, _WAIT_SECONDS)
    later = _Client(slots).request(lambda: 7)
    for _ in range(100):
        await asyncio.sleep(0)
    assert slots.statistics().tasks_waiting == 1
    assert not task.done()
    go.set()
    async with asyncio.timeout(_WAIT_SECONDS):
        assert await later == 7
    assert slots.borrowed_tokens == 0


async def test_work_that_is_cancelled_before_it_begins_gives_its_slot_back() -> None:
    slots = CapacityLimiter(1)
    for _ in range(200):
        client = _Client(slots)
        task = client.request(lambda: None)
        await asyncio.sleep(0)
        client.disconnect()
        await asyncio.wait([task])
    async with asyncio.timeout(_WAIT_SECONDS):
        assert await _Client(slots).request(lambda: 7) == 7


async def test_a_failure_of_the_work_is_raised_and_frees_its_slot() -> None:
    slots = CapacityLimiter(1)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            await _Client(slots).request(lambda: 1 // 0)


async def test_a_disconnect_cancels_a_call_to_a_service() -> None:
    slots, called, ends = CapacityLimiter(1), asyncio.Event(), []

    async def service() -> None:
        called.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ends.append("cancelled")
            raise

    client = _Client(slots)
    task = client.request(lambda: call_service(service))
    async with asyncio.timeout(_WAIT_SECONDS):
        await called.wait()
    client.disconnect()
    await _ends_as_disconnected(task)
    assert ends == ["cancelled"]
    assert slots.borrowed_tokens == 0


class _Services:
    """An embeddings service and a reranker, which count their calls."""

    name = "fake"

    def __init__(self) -> None:
        self.calls = 0
        self.embeddings = self

    async def create(self, **_: object) -> object:
        self.calls += 1
        return SimpleNamespace(data=[SimpleNamespace(index=0, embedding=[1.0])])

    async def scores(self, _query: str, notes: Sequence[Note]) -> list[float]:
        self.calls += 1
        return [1.0 for _ in notes]

    def embed(self) -> None:
        OpenAIEmbedder("e", self, "m", SilenceTimeout("e", _WAIT_SECONDS)).embed(["text"])

    def rerank(self) -> None:
        _rerank(self, "query", [Chunk("a.md", 0, 1.0, "text", None, "{}")], 1)


@pytest.mark.parametrize("call", [_Services.embed, _Services.rerank])
async def test_after_a_disconnect_no_service_is_called(call: Callable[[_Services], None]) -> None:
    services = _Services()
    await _Client(CapacityLimiter(1)).request(lambda: call(services))
    assert services.calls == 1

    client = _Client(CapacityLimiter(1))

    def work() -> None:
        client.wait_for_disconnect()
        call(services)

    task = client.request(work)
    await client.disconnect_during_work()
    await _ends_as_disconnected(task)
    assert services.calls == 1
