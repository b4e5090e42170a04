"""Events go to every handler, in order."""

from collections.abc import AsyncGenerator

import pytest

from memconform.cli.events import dispatch


async def test_every_handler_gets_every_event_and_the_last_one_is_returned() -> None:
    heard: list[tuple[str, int]] = []

    async def events() -> AsyncGenerator[int, None]:
        yield 1
        yield 2

    handlers = [lambda e: heard.append(("one", e)), lambda e: heard.append(("other", e))]
    assert await dispatch(events(), handlers) == 2
    assert heard == [("one", 1), ("other", 1), ("one", 2), ("other", 2)]


async def test_a_handler_that_fails_ends_the_events() -> None:
    closed = False

    async def events() -> AsyncGenerator[int, None]:
        nonlocal closed
        try:
            yield 1
            yield 2
        finally:
            closed = True

    def fail(_: int) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await dispatch(events(), [fail])
    assert closed
