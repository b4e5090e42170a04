"""An interrupt at any point of a daemon's start ends the daemon, before the program goes on."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from memconform.concurrency import Slots
from memconform.conformance.catalog import catalog
from memconform.conformance.suite import conform
from memconform.daemons import guard_process
from memconform.daemons.guard_process import end_guards
from memconform.daemons.manifest import Manifest
from memconform.daemons.manifest_runner import ManifestRunner
from memconform.daemons.process import DaemonProcess
from memconform.daemons.resources import RUN_ID_VARIABLE, end_strays
from memconform.daemons.sdk_runner import Launch, SdkRunner
from memconform.daemons.tasks import finish, run_together
from memconform.errors import DaemonError
from tests.waiting import wait_until

_DAEMON = ("sh", "-c", 'trap "" TERM; : >started; while :; do sleep 1000; done')
"""It never listens, and only SIGKILL ends it."""


def _wait_for(path: Path) -> None:
    """Block this thread, as a busy machine would: the daemon runs, the harness does not."""
    wait_until(path.exists)


async def _turn_until(condition: Callable[[], bool]) -> None:
    """Let the event loop turn until something is so; each turn is a point of the start."""
    while not condition():  # noqa: ASYNC110 - what is waited for has no event
        await asyncio.sleep(0)


async def _interrupt(work: Coroutine[Any, Any, object], started: Path, turns: int | None) -> None:
    """Cancel `work` so many turns of the event loop after its daemon has been forked.

    None cancels it before. The daemon runs before the cancellation arrives.
    """
    task = asyncio.ensure_future(work)
    if turns is None:
        await asyncio.sleep(0)
    else:
        await _turn_until(lambda: bool(guard_process._unfinished))
        for _ in range(turns):
            await asyncio.sleep(0)
        _wait_for(started)
    task.cancel()
    try:
        process = await task
    except asyncio.CancelledError:
        return
    # Beside other load, the start may be over after so few turns: then there is a handle.
    assert isinstance(process, DaemonProcess)
    await finish(_stop(process))


def _start(folder: Path, run_id: str) -> Coroutine[Any, Any, object]:
    env = {**os.environ, RUN_ID_VARIABLE: run_id}
    return DaemonProcess.start(_DAEMON, env=env, cwd=folder, log=folder / "log")


async def _serve(folder: Path, run_id: str) -> None:
    manifest = Manifest.model_validate(
        {
            "name": "deaf",
            "language": "sh",
            "serve": {"argv": _DAEMON, "port": "announced"},
            "capabilities": {"profiles": ["core"], "modes": ["bm25"]},
        }
    )
    launch = Launch(run_id=run_id, folder=folder)
    async with ManifestRunner(manifest, folder).serve(launch):
        pytest.fail("it never becomes ready")


@pytest.mark.parametrize("turns", [None, 0, 1, 2, 3, 5, 8, 13])
@pytest.mark.parametrize("begin", [_start, _serve])
async def test_an_interrupt_during_the_start_leaves_no_process(
    tmp_path: Path,
    begin: Callable[[Path, str], Coroutine[Any, Any, object]],
    turns: int | None,
) -> None:
    """A guard that was killed between its fork and its registration left its daemon running."""
    run_id = f"interrupted-{os.getpid()}-{turns}-{begin.__name__}"
    await _interrupt(begin(tmp_path, run_id), tmp_path / "started", turns)
    assert end_strays(run_id) == []
    assert not guard_process._unfinished


def test_a_daemon_whose_task_was_cancelled_ends_before_the_program(tmp_path: Path) -> None:
    """`asyncio.run` cancels what is left of a command: also tasks that wait for a daemon's end."""
    run_id = f"left-{os.getpid()}"

    async def hold() -> None:
        process = await DaemonProcess.start(
            _DAEMON,
            env={**os.environ, RUN_ID_VARIABLE: run_id},
            cwd=tmp_path,
            log=tmp_path / "log",
        )
        try:
            await process.wait()
        finally:
            await finish(_stop(process))

    async def command() -> None:
        held.append(asyncio.create_task(hold()))
        await _turn_until(lambda: bool(guard_process._unfinished))
        _wait_for(tmp_path / "started")

    held: list[asyncio.Task[None]] = []
    asyncio.run(command())
    end_guards()
    assert end_strays(run_id) == []
    assert not guard_process._unfinished


async def _stop(process: DaemonProcess) -> None:
    await process.stop()


class _Slow(SdkRunner):
    """A daemon that takes several turns of the event loop to start and to stop."""

    name = "slow"
    modes = None
    managed = True

    def __init__(self, log: list[str], hold: asyncio.Event) -> None:
        self._log = log
        self._hold = hold

    @asynccontextmanager
    async def serve(self, launch: Launch) -> AsyncIterator["object"]:  # type: ignore[override]
        del launch
        self._log.append("start")
        try:
            await self._hold.wait()
            yield object()
        finally:
            await finish(self._stop())

    async def _stop(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)
        self._log.append("stop")


_CASES = """
- id: a
  title: A
  rules: [core.health]
  daemon: {alone: true}
  steps: [{http: GET /healthz, expect: {healthy: 200}}]
- id: b
  title: B
  rules: [core.health]
  daemon: {alone: true}
  steps: [{http: GET /healthz, expect: {healthy: 200}}]
- id: c
  title: C
  rules: [core.health]
  daemon: {alone: true}
  steps: [{http: GET /healthz, expect: {healthy: 200}}]
"""


async def test_an_interrupted_session_waits_for_all_daemons(tmp_path: Path) -> None:
    """The first job to be cancelled, which waited for a slot, ended the session's waiting."""
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "cases.yaml").write_text(_CASES)
    log: list[str] = []
    hold = asyncio.Event()

    async def session() -> None:
        events = conform(
            "slow",
            lambda: _Slow(log, hold),
            catalog(tmp_path / "cases"),
            known=(),
            folder=tmp_path / "daemons",
            run_id="run",
            slots=Slots(2),
        )
        async for _ in events:
            pytest.fail("no case can end")

    task = asyncio.create_task(session())
    await _turn_until(lambda: log == ["start", "start"])
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert log == ["start", "start", "stop", "stop"]


async def test_an_interrupt_precedes_the_failure_of_what_it_interrupts() -> None:
    """As a failure it was the case's, and the remaining cases ran."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def end() -> None:
        begun.set()
        await go_on.wait()
        raise DaemonError("left others", code="daemon_left_over", hint="")

    task = asyncio.create_task(finish(end()))
    await begun.wait()
    task.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError) as raised:
        await task
    assert isinstance(raised.value.__cause__, DaemonError)


async def test_work_that_runs_together_ends_together() -> None:
    ended: list[str] = []

    async def fail() -> None:
        await asyncio.sleep(0)
        raise OSError("disk")

    async def hold() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(20):
                await asyncio.sleep(0)
            ended.append("hold")

    with pytest.raises(OSError, match="disk"):
        await run_together(hold(), fail())
    assert ended == ["hold"]
    assert await run_together() == []
    assert await run_together(asyncio.sleep(0, 1), asyncio.sleep(0, 2)) == [1, 2]
