"""Sends requests as they are scheduled, whether or not earlier ones were answered."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from memconform.load.arrivals import Arrival
from memconform.load.records import Operation

_PROBE_SECONDS = 0.01
"""Mean gap between two probes of the event loop in a closed loop, where nothing is scheduled."""


class Clock(Protocol):
    """Measures time and waits, in seconds from any instant."""

    def now(self) -> float: ...

    async def sleep_until(self, at: float) -> None:
        """Wait until an instant; one that has passed lets other tasks run once."""
        ...


class SystemClock:
    """The clock by which the client measures latencies, too."""

    def now(self) -> float:
        return time.perf_counter()

    async def sleep_until(self, at: float) -> None:
        await asyncio.sleep(max(at - time.perf_counter(), 0))


@dataclass(frozen=True, slots=True)
class Reply:
    """How a request ended, by the clock's instants."""

    failure: str | None
    """None if it was answered, else the code of its failure."""
    sent_at: float
    """When its last piece was handed to the kernel; of one that failed, when the call began."""
    ended_at: float


@dataclass(frozen=True, slots=True)
class Sample:
    """A request that was sent, in seconds from the beginning of the step."""

    operation: Operation
    failure: str | None
    """As in `Reply`."""
    intended_at: float | None
    """When it was to be sent; None in a closed loop."""
    sent_at: float
    ended_at: float
    in_flight: int
    """Requests that were open when it was sent, without itself."""


Call = Callable[[Arrival], Awaitable[Reply]]


class Recorder(Protocol):
    """Collects what a generator observes."""

    def add(self, sample: Sample) -> None:
        """A request ended."""
        ...

    def add_unsent(self, arrival: Arrival) -> None:
        """A request was not sent, because too many were open."""
        ...

    def add_lateness(self, seconds: float) -> None:
        """The harness was to do something, and did it so much later."""
        ...


@dataclass(frozen=True, slots=True)
class Generator:
    """Sends the requests of one step, and returns once all have ended.

    `is_over` says that the daemon is gone: nothing more is sent then.
    """

    call: Call
    recorder: Recorder
    clock: Clock
    is_over: Callable[[], bool] = lambda: False

    async def open_loop(self, schedule: Iterable[Arrival], in_flight_limit: int) -> None:
        """Send each request at its instant, however long the answers to earlier ones take.

        The lateness of a send is that of this process alone: what the daemon does delays none. It
        samples the event loop at the instants of a Poisson process, which see it as it is on
        average, so that answers are read as late as requests are sent.
        """
        started = self.clock.now()
        open_requests = 0

        async def send(arrival: Arrival, in_flight: int) -> None:
            nonlocal open_requests
            self.recorder.add_lateness(self.clock.now() - started - arrival.at_s)
            reply = await self.call(arrival)
            open_requests -= 1
            self._add(arrival, reply, started, arrival.at_s, in_flight)

        async with asyncio.TaskGroup() as group:
            for arrival in schedule:
                await self.clock.sleep_until(started + arrival.at_s)
                if self.is_over():
                    break
                if open_requests >= in_flight_limit:
                    self.recorder.add_unsent(arrival)
                    continue
                group.create_task(send(arrival, open_requests))
                open_requests += 1

    async def closed_loop(
        self, requests: Iterator[Arrival], workers: int, duration_s: float, seed: int
    ) -> None:
        """Have each worker send its next request as soon as it has an answer.

        A daemon that stalls is sent nothing meanwhile, so that the stall counts once for a worker:
        this finds out the throughput, and not what users would wait.
        """
        started = self.clock.now()

        async def work() -> None:
            while self.clock.now() - started < duration_s and not self.is_over():
                arrival = next(requests)
                self._add(arrival, await self.call(arrival), started, None, workers - 1)

        async with self._probed(seed), asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(work())

    @asynccontextmanager
    async def _probed(self, seed: int) -> AsyncIterator[None]:
        """Measure how late the event loop is while the block runs."""
        probe = asyncio.create_task(self._probe(seed))
        try:
            yield
        finally:
            probe.cancel()
            await asyncio.gather(probe, return_exceptions=True)

    async def _probe(self, seed: int) -> None:
        rng = random.Random(f"{seed} probe")  # noqa: S311 - repeatable, and no secret
        at = self.clock.now()
        while True:
            at += rng.expovariate(1 / _PROBE_SECONDS)
            await self.clock.sleep_until(at)
            self.recorder.add_lateness(self.clock.now() - at)

    def _add(
        self,
        arrival: Arrival,
        reply: Reply,
        started: float,
        intended_at: float | None,
        in_flight: int,
    ) -> None:
        self.recorder.add(
            Sample(
                arrival.operation,
                reply.failure,
                intended_at,
                reply.sent_at - started,
                reply.ended_at - started,
                in_flight,
            )
        )
