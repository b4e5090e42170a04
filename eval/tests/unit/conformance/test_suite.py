"""Cases beside others: what happens when a neighbour ends their daemon, or takes their time."""

import asyncio
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from memconform.concurrency import Slots
from memconform.conformance import job_runner, suite
from memconform.conformance.case import Case
from memconform.conformance.case_runner import CaseRun
from memconform.conformance.catalog import CaseVariant
from memconform.conformance.causes import is_timeout
from memconform.conformance.fixture import Fixture
from memconform.conformance.fixture_documents import StoppedError
from memconform.conformance.results import CaseResult, Check, Result, SdkResult
from memconform.daemons.process import DaemonProcess
from memconform.daemons.resources import Resources
from memconform.daemons.sdk_runner import Daemon, Launch, SdkRunner
from memconform.errors import DaemonError


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


def _entry(name: str, *, concurrent: bool = False, alone: bool = False) -> CaseVariant:
    case = Case.model_validate(
        {
            "id": name,
            "title": name,
            "rules": ["wire.json"],
            "concurrent": concurrent,
            "daemon": {"alone": alone},
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

    monkeypatch.setattr(job_runner, "run_case", run_case)
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
            slots=Slots(1),
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


class _Machine:
    """In place of `run_case`: cases run out of time as a test says."""

    def __init__(self, late: Callable[[str, int], bool], slots: Slots) -> None:
        self._late = late
        self._slots = slots
        self.runs: Counter[str] = Counter()
        self.alone: set[str] = set()
        """The cases that had all slots when they were last run."""

    async def run_case(self, entry: CaseVariant, fixture: Fixture, brain: str) -> CaseRun:
        del fixture, brain
        self.runs[entry.id] += 1
        self.alone.discard(entry.id)
        if self._slots.locked():
            self.alone.add(entry.id)
        is_late = self._late(entry.id, self.runs[entry.id])
        run = _run(entry, Result.UNTESTABLE if is_late else Result.PASS)
        return replace(run, timed_out=is_late)


class _LateStarts(_Runner):
    """Its daemons are ready in time, or not, as a test says."""

    def __init__(self, late: Callable[[int], bool]) -> None:
        super().__init__()
        self._late = late
        self.starts = 0

    @asynccontextmanager
    async def serve(self, launch: Launch) -> AsyncIterator[Daemon]:
        self.starts += 1
        if self._late(self.starts):
            raise DaemonError("it is not ready", code="daemon_not_ready")
        async with super().serve(launch) as daemon:
            yield daemon


async def _run_conform(
    runner: SdkRunner,
    entries: Sequence[CaseVariant],
    folder: Path,
    slots: Slots,
    *,
    repeats: bool = True,
) -> tuple[list[str], SdkResult]:
    """Return the cases as they were reported, and the results."""
    events = suite.conform(
        *("mortal", lambda: runner, entries),
        known=(),
        folder=folder,
        run_id="test",
        slots=slots,
        repeats=repeats,
    )
    reported: list[str] = []
    async for event in events:
        if isinstance(event, suite.SdkFinished):
            return reported, event.result
        reported.append(event.run.result.case)
    raise AssertionError("the last event has the results")


def _results(sdk: SdkResult) -> dict[str, Result]:
    return {case.case: case.result for case in sdk.cases}


async def test_a_case_that_times_out_beside_others_is_repeated_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A daemon took longer than 30 s to start in CI, beside twenty others on two cores."""
    slots = Slots(9)
    machine = _Machine(lambda case, run: case.startswith("late") and run == 1, slots)
    monkeypatch.setattr(job_runner, "run_case", machine.run_case)
    entries = [_entry(name, alone=True) for name in ("late", "late-too", "fine", "fine-too")]
    reported, sdk = await _run_conform(_Runner(), entries, tmp_path, slots)
    assert sorted(reported[:2]) == ["fine", "fine-too"]
    assert sorted(reported[2:]) == ["late", "late-too"]
    assert set(_results(sdk).values()) == {Result.PASS}
    assert machine.runs == {"late": 2, "late-too": 2, "fine": 1, "fine-too": 1}
    assert machine.alone == {"late", "late-too"}
    assert sdk.repeated == ["late", "late-too"]


async def test_a_late_start_is_repeated_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    slots = Slots(2)
    machine = _Machine(lambda *_: False, slots)
    monkeypatch.setattr(job_runner, "run_case", machine.run_case)
    runner = _LateStarts(lambda start: start == 1)
    reported, sdk = await _run_conform(runner, [_entry("a"), _entry("b")], tmp_path, slots)
    assert reported == ["a", "b"]
    assert _results(sdk) == {"a": Result.PASS, "b": Result.PASS}
    assert sdk.repeated == ["a", "b"]
    assert runner.starts == 2


async def test_repeats_end_after_three_that_time_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A daemon that never starts must not take as many minutes as there are settings."""
    slots = Slots(2)
    machine = _Machine(lambda *_: True, slots)
    monkeypatch.setattr(job_runner, "run_case", machine.run_case)
    entries = [_entry(f"n{number}", alone=True) for number in range(9)]
    never = _LateStarts(lambda _: True)
    for runner in (_Runner(), never):
        reported, sdk = await _run_conform(runner, entries, tmp_path, slots)
        assert sorted(reported) == sorted(entry.id for entry in entries)
        assert set(_results(sdk).values()) == {Result.UNTESTABLE}
        assert len(sdk.repeated) == 3
    assert sum(machine.runs.values()) == len(entries) + 3
    assert never.starts == len(entries) + 3


async def test_a_suite_without_repeats_reports_a_timeout_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    slots = Slots(1)
    machine = _Machine(lambda *_: True, slots)
    monkeypatch.setattr(job_runner, "run_case", machine.run_case)
    entries = [_entry("late"), _entry("later")]
    reported, sdk = await _run_conform(_Runner(), entries, tmp_path, slots, repeats=False)
    assert reported == ["late", "later"]
    assert machine.runs == {"late": 1, "later": 1}
    assert not sdk.repeated


def test_a_start_that_takes_too_long_is_a_timeout_wherever_it_fails() -> None:
    late = DaemonError("it is not ready", code="daemon_not_ready")
    stopped = StoppedError("it does not start", "start")
    stopped.__cause__ = late
    assert is_timeout(late)
    assert is_timeout(stopped)
    assert is_timeout(TimeoutError())
    assert not is_timeout(DaemonError("it ended", code="daemon_exited"))
    assert not is_timeout(StoppedError("404", "status"))
