"""The generator, in virtual time: no latency here is one of this machine."""

import asyncio
from collections.abc import Iterator
from itertools import count

import pytest

from memconform.load.arrivals import Arrival
from memconform.load.generator import Generator, Reply, Sample
from memconform.load.tally import Tally
from memconform.load.verdict import HarnessLimits, overload, saturation_reasons
from tests.unit.load.virtual_time import VirtualClock, clock_and_loop, run

_SERVICE = 0.01
_LIMITS = HarnessLimits(lateness_limit_ms=25, cpu_cores=0.1)


class _Samples:
    """A recorder that keeps everything."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self.unsent: list[Arrival] = []
        self.lateness: list[float] = []

    def add(self, sample: Sample) -> None:
        self.samples.append(sample)

    def add_unsent(self, arrival: Arrival) -> None:
        self.unsent.append(arrival)

    def add_lateness(self, seconds: float) -> None:
        self.lateness.append(seconds)


class _Daemon:
    """Answers one request after another, and none from `stalls_at` on for `stall` seconds."""

    def __init__(self, clock: VirtualClock, stalls_at: float = 1.0, stall: float = 0.0) -> None:
        self._clock = clock
        self._stall = (stalls_at, stalls_at + stall)
        self._one = asyncio.Lock()
        self.service_s = _SERVICE
        self.calls = 0

    async def call(self, arrival: Arrival) -> Reply:
        del arrival
        self.calls += 1
        sent_at = self._clock.now()
        async with self._one:
            begins, ends = self._stall
            if begins <= self._clock.now() < ends:
                await self._clock.sleep_until(ends)
            await asyncio.sleep(self.service_s)  # short limit: it is virtual
        return Reply(None, sent_at, self._clock.now())


def _even(rate: float, duration: float) -> list[Arrival]:
    return [Arrival(n, n / rate, "search", 0) for n in range(round(rate * duration))]


def _endless() -> Iterator[Arrival]:
    return (Arrival(n, 0.0, "search", 0) for n in count())


def test_a_stall_is_charged_to_every_request_that_would_have_waited() -> None:
    """Coordinated omission: whoever waits for an answer before it asks again sees one slow one."""
    clock, loop = clock_and_loop()
    daemon, seen = _Daemon(clock, stalls_at=1.0, stall=1.0), _Samples()
    generator = Generator(daemon.call, seen, clock)
    run(loop, generator.open_loop(_even(10, 3), in_flight_limit=100))
    latency = {s.intended_at: s.ended_at - (s.intended_at or 0) for s in seen.samples}
    assert len(latency) == 30
    during = [latency[n / 10] for n in range(10, 20)]
    # The first of them waits for the whole second, each later one for what is left of it.
    for number, waited in enumerate(during):
        assert waited == pytest.approx(1.0 - number / 10 + (number + 1) * _SERVICE, abs=1e-3)
    assert all(latency[n / 10] == pytest.approx(_SERVICE, abs=1e-3) for n in range(10))


def test_a_closed_loop_sees_the_same_stall_once() -> None:
    clock, loop = clock_and_loop()
    daemon, seen = _Daemon(clock, stalls_at=1.0, stall=1.0), _Samples()
    generator = Generator(daemon.call, seen, clock)
    run(loop, generator.closed_loop(_endless(), 1, 3.0, 1))
    slow = [s for s in seen.samples if s.ended_at - s.sent_at > 0.5]
    assert len(slow) == 1
    assert all(s.intended_at is None for s in seen.samples)


def test_a_slow_daemon_delays_no_request_and_makes_the_harness_not_late() -> None:
    clock, loop = clock_and_loop()
    daemon, tally = _Daemon(clock, stall=3.0), Tally(["search"], 3)
    generator = Generator(daemon.call, tally, clock)
    run(loop, generator.open_loop(_even(100, 3), in_flight_limit=1_000))
    assert daemon.calls == 300
    assert overload(tally, _LIMITS) is None
    assert any("the queue grows" in reason for reason in saturation_reasons(tally, 3))


def test_a_harness_that_is_busy_is_late_and_voids_the_step() -> None:
    """The daemon answers as fast as ever; what is slow is the reading of its answers."""
    clock, loop = clock_and_loop()
    tally = Tally(["search"], 3)

    async def call(arrival: Arrival) -> Reply:
        del arrival
        sent_at = clock.now()
        clock.compute(0.02)
        await asyncio.sleep(0)
        return Reply(None, sent_at, clock.now())

    run(loop, Generator(call, tally, clock).open_loop(_even(100, 3), in_flight_limit=1_000))
    failure = overload(tally, _LIMITS)
    assert failure is not None
    assert failure.code == "harness_overloaded"
    assert "the harness is overloaded, not the daemon" in failure.message


def test_the_probe_of_a_closed_loop_notices_a_busy_harness() -> None:
    for seconds, is_late in ((0.0, False), (0.05, True)):
        clock, loop = clock_and_loop()
        tally = Tally(["search"], 2)

        async def call(_: Arrival, clock: VirtualClock = clock, seconds: float = seconds) -> Reply:
            sent_at = clock.now()
            clock.compute(seconds)
            await asyncio.sleep(_SERVICE)  # short limit: it is virtual
            return Reply(None, sent_at, clock.now())

        run(loop, Generator(call, tally, clock).closed_loop(_endless(), 2, 2.0, 1))
        assert (overload(tally, _LIMITS) is not None) is is_late


def test_arrivals_beyond_the_limit_are_counted_and_not_delayed() -> None:
    clock, loop = clock_and_loop()
    daemon, tally = _Daemon(clock, stall=3.0), Tally(["search"], 3)
    generator = Generator(daemon.call, tally, clock)
    run(loop, generator.open_loop(_even(100, 3), in_flight_limit=20))
    assert tally.in_flight_max == 20
    assert tally.sent + tally.unsent == 300
    [record] = tally.operations()
    assert record.offered == 300
    assert record.errors == {"not_sent": tally.unsent}
    assert any("not sent: 20 were open" in each for each in saturation_reasons(tally, 3))


def test_nothing_is_sent_to_a_daemon_that_is_gone() -> None:
    clock, loop = clock_and_loop()
    daemon, seen = _Daemon(clock), _Samples()
    generator = Generator(daemon.call, seen, clock, lambda: clock.now() > 1)
    run(loop, generator.open_loop(_even(10, 3), in_flight_limit=20))
    assert daemon.calls == 11
