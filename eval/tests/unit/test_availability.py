"""SDKs are handed out as they are built."""

import asyncio
from collections.abc import Callable
from unittest import mock

import pytest

from memconform.daemons import availability
from memconform.daemons.availability import as_built
from memconform.daemons.runner import SdkRunner
from memconform.errors import DaemonError


def _runner(name: str, build: Callable[..., object]) -> SdkRunner:
    runner = mock.Mock(spec=SdkRunner, build=build)
    runner.name = name
    return runner


async def _at_once(_: object) -> None:
    await asyncio.sleep(0)


async def _fails(_: object) -> None:
    raise DaemonError("no compiler", code="toolchain_missing")


async def test_what_is_built_comes_in_the_order_given() -> None:
    async def soon(_: object) -> None:
        await asyncio.sleep(0.05)

    runners = [_runner("go", soon), _runner("py", _at_once), _runner("ts", _at_once)]
    found = [runner.name async for runner, _ in as_built(runners, print)]
    assert found == ["go", "py", "ts"]


async def test_one_that_takes_long_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(availability, "_PATIENCE_SECONDS", 0.01)
    others_came = asyncio.Event()

    async def slow(_: object) -> None:
        await others_came.wait()

    found = []
    told: list[str] = []
    async for runner, absence in as_built(
        [_runner("go", slow), _runner("py", _fails), _runner("ts", _at_once)], told.append
    ):
        found.append((runner.name, absence.error.code if absence else None))
        if len(found) == 2:
            others_came.set()
    assert found == [("py", "toolchain_missing"), ("ts", None), ("go", None)]
    assert told == ["go still building: latencies are not those of an idle machine"] * 2


async def test_closing_it_ends_what_is_building() -> None:
    ended = False

    async def endless(_: object) -> None:
        nonlocal ended
        try:
            await asyncio.Event().wait()
        finally:
            ended = True

    builds = as_built([_runner("py", _at_once), _runner("go", endless)], print)
    assert (await anext(builds))[0].name == "py"
    await builds.aclose()
    assert ended
