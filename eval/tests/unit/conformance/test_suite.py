"""Cases that share a daemon: what happens to one when a neighbour ends the daemon."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from memconform.conformance import suite
from memconform.conformance.case import Case
from memconform.conformance.case_runner import CaseRun
from memconform.conformance.catalog import CaseVariant
from memconform.conformance.fixture import Fixture
from memconform.conformance.results import CaseResult, Check, Result
from memconform.daemons.process import DaemonProcess
from memconform.daemons.resources import Resources
from memconform.daemons.sdk_runner import Daemon, Launch, SdkRunner


class _Daemon:
    """A daemon of which there is only the port."""

    ready_ms: float | None = None
    process: DaemonProcess | None = None

    def __init__(self, listener: socket.socket) -> None:
        host, port = listener.getsockname()
        self.base_url = f"http://{host}:{port}"

    async def wait_exit(self) -> str:
        return "exit status 1"

    def log_tail(self) -> str:
        return ""

    def resources(self) -> Resources | None:
        return None


class _Runner(SdkRunner):
    name = "mortal"

    def __init__(self) -> None:
        self.listeners: list[socket.socket] = []

    @asynccontextmanager
    async def serve(self, launch: Launch) -> AsyncIterator[Daemon]:
        del launch
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.listeners.append(listener)
            yield _Daemon(listener)


def _entry(name: str, *, concurrent: bool = False) -> CaseVariant:
    case = Case.model_validate(
        {
            "id": name,
            "title": name,
            "rules": ["wire.json"],
            "concurrent": concurrent,
            "steps": [{"http": "GET /v1/health", "expect": {"status": 200}}],
        }
    )
    return CaseVariant(name, name, case, {}, "test.yaml")


def _run(entry: CaseVariant, result: Result) -> CaseRun:
    check = Check(id=f"{entry.id}#wire", result=result, level="must", rules=["wire.json"])
    return CaseRun(CaseResult(case=entry.id, title=entry.id, checks=[check]), [])


async def test_a_case_whose_daemon_a_neighbour_ended_is_run_again_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    runner = _Runner()
    started: list[str] = []
    running: set[str] = set()
    died = asyncio.Event()

    async def run_case(entry: CaseVariant, fixture: Fixture, brain: str) -> CaseRun:
        del brain
        started.append(entry.id)
        neighbours = frozenset(running)
        running.add(entry.id)
        try:
            if entry.id == "fatal":
                runner.listeners[-1].close()
                died.set()
                return _run(entry, Result.FAIL)
            if entry.id == "long" and not died.is_set():
                await died.wait()
                return _run(entry, Result.UNTESTABLE)
            assert not neighbours
            assert await fixture.unexpected_exit() is None
            return _run(entry, Result.PASS)
        finally:
            running.remove(entry.id)

    monkeypatch.setattr(suite, "run_case", run_case)
    entries = [_entry("long", concurrent=True), _entry("fatal"), _entry("next")]
    events = [
        event
        async for event in suite.conform(
            "mortal",
            lambda: runner,
            entries,
            known=(),
            folder=tmp_path,
            run_id="test",
            slots=asyncio.Semaphore(1),
        )
    ]
    assert sorted(started[:2]) == ["fatal", "long"]
    assert started[2:] == ["next", "long"]
    # Each case is reported once, the first with what came of it alone.
    reported = [event.run.result.case for event in events if isinstance(event, suite.CaseFinished)]
    assert reported == ["fatal", "next", "long"]
    [end] = [event.result for event in events if isinstance(event, suite.SdkFinished)]
    assert {case.case: case.checks[0].result for case in end.cases} == {
        "long": Result.PASS,
        "fatal": Result.FAIL,
        "next": Result.PASS,
    }
    assert len(runner.listeners) == 2
