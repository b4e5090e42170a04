"""A time limit that passes while this process is held up says nothing about the other side."""

import asyncio
import time
from unittest import mock

import httpcore
import pytest

from memconform.client import transport
from memconform.client.timings import STALL_SECONDS, time_limit
from memconform.client.transport import CallClock, _Backend, _CheckedStream, timed

_STALL = 10.0


class _Clock:
    """Stands in for `time` of the transport."""

    def __init__(self) -> None:
        self.now = 100.0

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> _Clock:
    clock = _Clock()
    monkeypatch.setattr(transport, "time", clock)
    return clock


async def _read(clock: _Clock, *, late: float, answer: object) -> list[float | None]:
    """The limits of the reads of a call that is noticed `late` after its deadline of 2 s."""
    limits: list[float | None] = []

    async def read(_: int, timeout: float | None = None) -> object:  # noqa: ASYNC109
        limits.append(timeout)
        if len(limits) == 1:
            clock.now += 2 + late
            raise httpcore.ReadTimeout
        if isinstance(answer, Exception):
            raise answer
        return answer

    stream = _CheckedStream(mock.Mock(read=read), _Backend(secure=False))
    # short limit: the clock is ours.
    with timed(CallClock(first=2, total=60)) as call:
        call.sent(began=clock.now)
        await stream.read(1)
    return limits


async def test_a_daemon_gets_the_time_of_a_stall_back(clock: _Clock) -> None:
    assert await _read(clock, late=_STALL, answer=b"x") == [2, _STALL]


@pytest.mark.parametrize(
    ("late", "answer"), [(STALL_SECONDS / 2, b"x"), (_STALL, httpcore.ReadTimeout())]
)
async def test_a_daemon_that_is_late_without_a_stall_or_after_it_is_a_timeout(
    clock: _Clock, late: float, answer: object
) -> None:
    with pytest.raises(httpcore.ReadTimeout):
        await _read(clock, late=late, answer=answer)


def test_a_stall_at_the_end_of_a_call_extends_the_whole_call(clock: _Clock) -> None:
    call = CallClock(first=60, total=60)
    call.sent(began=clock.now)
    clock.now += 60 + _STALL
    assert call.excuse_stall()
    call.allow(60)
    assert call.remaining() == _STALL
    assert not call.excuse_stall()


def test_deadlines_start_after_a_write_and_the_latency_before_it(clock: _Clock) -> None:
    # short limit: the clock is ours.
    call = CallClock(first=1, total=60)
    began, clock.now = clock.now, clock.now + _STALL
    call.sent(began)
    assert call.elapsed_ms() == _STALL * 1e3
    assert call.remaining() == 1


async def test_a_stall_after_the_last_piece_of_a_request_is_part_of_the_latency(
    clock: _Clock,
) -> None:
    """The daemon works meanwhile; in 247 of 691 searches it said that it had taken longer."""

    async def write(_: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        del timeout
        clock.now += _STALL

    stream = _CheckedStream(mock.Mock(write=write), _Backend(secure=False))
    # short limit: the clock is ours.
    with timed(CallClock(first=1, total=60)) as call:
        # At the end of a body there is nothing to write, and nothing that starts a clock.
        for piece in (b"POST / HTTP/1.1", b"{}", b""):
            await stream.write(piece)
        assert call.elapsed_ms() == _STALL * 1e3
        assert call.remaining() == 1


async def test_a_limit_that_passes_during_a_stall_is_extended() -> None:
    # short limit: it is the subject.
    async with time_limit(0.05):
        # short limit: it is the subject.
        time.sleep(2)  # noqa: ASYNC251 - that is the point
        # A healthy partner, who could not run either, needs a moment.
        await asyncio.sleep(0)


@pytest.mark.parametrize("stall", [0.0, 3 * STALL_SECONDS])
async def test_endless_silence_ends_with_or_without_a_stall(stall: float) -> None:
    async def stall_and_wait() -> None:
        # short limit: it is the subject.
        async with time_limit(0.05):
            # short limit: it is the subject.
            time.sleep(stall)  # noqa: ASYNC251 - that is the point
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await stall_and_wait()
