"""SDKs are yielded as their builds finish."""

import asyncio
from collections.abc import Callable
from unittest import mock

import pytest

from memconform.daemons import availability
from memconform.daemons.availability import as_built
from memconform.daemons.sdk_runner import SdkRunner
from memconform.errors import DaemonError
from tests.conftest import WAIT_SECONDS


def _runner(name: str, build: Callable[..., object]) -> SdkRunner:
    runner = mock.Mock(spec=SdkRunner, build=build)
    runner.name = name
    return runner


async def _at_once(_: object) -> None:
    await asyncio.sleep(0)


async def _fails(_: object) -> None:
    raise DaemonError("no compiler", code="toolchain_missing")


async def test_quick_builds_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(availability, "_ORDER_SECONDS", WAIT_SECONDS)

    others_built = asyncio.Event()

    async def soon(_: object) -> None:
        await others_built.wait()

    async def sooner(_: object) -> None:
        others_built.set()

    runners = [_runner("go", soon), _runner("py", _at_once), _runner("ts", sooner)]
    names = [runner.name async for runner, _ in as_built(runners, print)]
    assert names == ["go", "py", "ts"]


async def test_a_slow_build_does_not_delay_others(monkeypatch: pytest.MonkeyPatch) -> None:
    # short limit: the slow build ends only after the others.
    monkeypatch.setattr(availability, "_ORDER_SECONDS", 0.01)
    others_built = asyncio.Event()

    async def slow(_: object) -> None:
        await others_built.wait()

    outcomes = []
    messages: list[str] = []
    async for runner, skip in as_built(
        [_runner("go", slow), _runner("py", _fails), _runner("ts", _at_once)], messages.append
    ):
        outcomes.append((runner.name, skip.error.code if skip else None))
        if len(outcomes) == 2:
            others_built.set()
    assert outcomes == [("py", "toolchain_missing"), ("ts", None), ("go", None)]
    assert messages == ["still building go: latencies exceed those of an idle machine"] * 2


async def test_closing_the_generator_cancels_unfinished_builds() -> None:
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


async def test_each_sdk_says_whether_it_is_building_or_waiting() -> None:
    states: list[tuple[str, str]] = []
    runners = [_runner("go", _at_once), _runner("py", _fails)]
    async for _ in as_built(runners, print, lambda *state: states.append(state)):
        pass
    assert states == [
        *(("go", "building"), ("py", "building"), ("py", "skipped"), ("go", "waiting")),
    ]
