"""Drivers that fail, hang or never start, and what becomes of the other cases. No process runs."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from memconform.conformance.case_runner import CaseRun
from memconform.conformance.clients import broken_clients
from memconform.conformance.clients.broken_clients import score_clients
from memconform.conformance.clients.catalog import ClientVariant, client_catalog
from memconform.conformance.clients.driver import Driver, DriverError, Failure, Hello, Observed
from memconform.conformance.clients.suite import conform_client
from memconform.conformance.mutation.mutant import Mutant
from memconform.conformance.mutation.results import Fate, MutantResult, result_of
from memconform.conformance.mutation.score import (
    BaselineCaseFinished,
    MutantFinished,
    ScoringFinished,
    ScoringStarted,
)
from memconform.conformance.results import CaseResult, Check, Result, SdkResult
from memconform.conformance.suite import CaseFinished, SdkFinished
from memconform.daemons.client_program import ClientProgram
from memconform.daemons.process import DaemonProcess
from tests.conftest import CHECKOUT

HELLO = Hello(driver="fake 1", protocol=1, claims=["ask", "search", "ingest"])
ENTRIES = [e for e in client_catalog() if e.base in ("client-answer", "client-no-citation")]

Reaction = Callable[[Observed], None]


class _FakeDriver:
    def __init__(self, react: Reaction) -> None:
        self._react = react

    async def call(self, command: Mapping[str, Any], observed: Observed) -> None:
        del command
        self._react(observed)


def _starting(
    react: Reaction, started: list[int]
) -> Callable[[], AbstractAsyncContextManager[tuple[Driver, Hello]]]:
    @asynccontextmanager
    async def start() -> AsyncIterator[tuple[Driver, Hello]]:
        started.append(1)
        yield cast("Driver", _FakeDriver(react)), HELLO

    return start


async def _held(
    start: Callable[[], AbstractAsyncContextManager[tuple[Driver, Hello]]],
    entries: list[ClientVariant] = ENTRIES,
) -> tuple[SdkResult, int]:
    """The results of all cases, and how many were run."""
    run = 0
    async for event in conform_client("fake", start, entries):
        if isinstance(event, SdkFinished):
            return event.result, run
        run += isinstance(event, CaseFinished)
    raise AssertionError("no result")


def _fail(observed: Observed) -> None:
    del observed
    raise DriverError("the driver of fake ended", code="driver_ended")


def _hang(observed: Observed) -> None:
    observed.ended = "silent"


async def test_a_driver_that_answers_no_call_is_given_up_after_three() -> None:
    """A run of 609 cases took 100 minutes, and half of its checks passed."""
    started: list[int] = []
    result, run = await _held(_starting(_hang, started))
    assert run == len(started) == 3
    counts = result.counts()
    assert counts[Result.FAIL] == 6  # no end of the call, and no request
    assert result.exit_code.name == "DAEMON"
    causes = {
        cause.cause for case in result.cases for check in case.checks for cause in check.causes
    }
    assert "the driver fails in every case" in causes
    assert "client.events: no request is sent" in causes
    passed = {
        c.id.partition("#")[2] for case in result.cases for c in case.checks if c.result == "pass"
    }
    assert passed == {"alive"}


async def test_a_driver_that_ends_in_every_case_is_given_up_after_three() -> None:
    started: list[int] = []
    result, run = await _held(_starting(_fail, started))
    assert run == len(started) == 3
    ended = [c for case in result.cases for c in case.checks if c.result is Result.FAIL]
    assert [check.id.partition("#")[2] for check in ended] == ["alive"] * 3
    assert {c.result for c in result.cases[-1].checks} == {"untestable"}


async def test_a_driver_that_never_starts_is_not_started_again() -> None:
    started: list[int] = []

    @asynccontextmanager
    async def start() -> AsyncIterator[tuple[Driver, Hello]]:
        started.append(1)
        _fail(Observed())
        yield cast("Driver", None), HELLO

    result, run = await _held(start)
    assert (run, len(started)) == (0, 1)
    assert {c.result for case in result.cases for c in case.checks} == {"untestable"}
    assert result.exit_code.name == "DAEMON"


async def test_a_bug_of_the_harness_loses_one_case_alone() -> None:
    """A requirement that could not be put into words ended the run."""
    calls: list[int] = []

    def react(observed: Observed) -> None:
        calls.append(1)
        if len(calls) == 1:
            raise TypeError("bug")
        observed.ended = "ok"

    result, run = await _held(_starting(react, []))
    assert run == len(ENTRIES)
    assert [case.result for case in result.cases].count(Result.ERROR) == 1
    assert result.exit_code.name == "INTERNAL"


async def test_bugs_of_the_harness_are_not_blamed_on_the_driver() -> None:
    """After three of them, the other cases said that the driver answers no call."""

    def react(observed: Observed) -> None:
        del observed
        raise TypeError("bug")

    result, run = await _held(_starting(react, []))
    assert run == len(ENTRIES) > 3
    assert {case.result for case in result.cases} == {Result.ERROR}


async def test_a_text_that_is_cut_within_a_pair_of_surrogates_is_reported() -> None:
    """No file could hold it, and the run was lost."""

    def react(observed: Observed) -> None:
        observed.events.append(("an\ud83esw", {"text": "\ud83e"}))
        observed.failure = Failure(kind="protocol", message="bad \ud83e")
        observed.ended = "error"

    result, _ = await _held(_starting(react, []))
    assert {case.result for case in result.cases} == {Result.FAIL}
    assert result.model_dump_json()
    got = [line for case in result.cases for check in case.checks for line in check.got]
    assert any("bad \\ud83e" in line for line in got)


async def test_a_machine_without_ipv6_loses_one_case_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    start_server = asyncio.start_server

    async def without_ipv6(accept: Any, host: str, *rest: Any, **options: Any) -> asyncio.Server:
        if host == "::1":
            raise OSError(99, "Cannot assign requested address")
        return await start_server(accept, host, *rest, **options)

    monkeypatch.setattr(asyncio, "start_server", without_ipv6)
    entries = [e for e in client_catalog() if e.id == "client-url-host[[::1],ask]"]
    result, _ = await _held(_starting(_hang, []), entries)
    assert [c.result for c in result.cases[0].checks] == ["not_applicable"] * 4


class _FakeProcess:
    """A process of a driver that runs on; its lines are those of the test."""

    async def wait(self) -> str:
        await asyncio.Event().wait()
        raise AssertionError

    def tail(self) -> str:
        return ""


def _driver(lines: bytes, *, ends: bool = False) -> Driver:
    reader = asyncio.StreamReader()
    reader.feed_data(lines)
    if ends:
        reader.feed_eof()
    commands = os.open(os.devnull, os.O_WRONLY)
    return Driver("fake", cast("DaemonProcess", _FakeProcess()), reader, commands)


COMMAND = {"call": "ask", "deadlineMs": 1000}


async def test_a_client_that_yields_without_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """It filled the memory of the machine: 5 GB in 45 seconds."""
    monkeypatch.setattr("memconform.conformance.clients.driver._MOST_EVENTS", 10)
    driver, observed = _driver(b'{"id": 1, "event": "answer_delta", "data": {}}\n' * 50), Observed()
    await driver.call(COMMAND, observed)
    assert (observed.ended, len(observed.events)) == ("silent", 11)
    driver.close()


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b'{"ok": null}\n', "it has no id"),
        (b'{"id": 2, "ok": null}\n', "of another call"),
        (b'{"id": 1, "ok": NaN}\n', "not JSON"),
        (b"calling\n", "not JSON"),
        (b'{"id": 1}\n', "neither an event nor the end"),
    ],
)
async def test_a_line_that_is_not_of_the_protocol_is_refused(line: bytes, why: str) -> None:
    driver = _driver(line)
    with pytest.raises(DriverError, match=why):
        await driver.call(COMMAND, Observed())
    driver.close()


async def test_the_end_of_what_a_driver_writes_is_no_endless_loop() -> None:
    """A run that was interrupted took all of a core, for ever."""
    driver = _driver(b"", ends=True)
    with pytest.raises(DriverError, match="cannot be read any more"):
        await driver.call(COMMAND, Observed())
    driver.close()


@pytest.mark.parametrize("claims", [[], ["search"]])
async def test_what_is_not_claimed_is_not_run(claims: list[Any]) -> None:
    @asynccontextmanager
    async def start() -> AsyncIterator[tuple[Driver, Hello]]:
        yield cast("Driver", _FakeDriver(_fail)), Hello(driver="x", protocol=1, claims=claims)

    result, _ = await _held(start)
    assert {c.result for case in result.cases for c in case.checks} == {"not_applicable"}


@pytest.mark.parametrize("failures", [0, 1, 2])
async def test_a_busy_machine_makes_no_false_alarm_of_a_good_client(
    failures: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What fails is repeated, and nothing else; only what fails again is an alarm."""
    runs: list[tuple[list[ClientVariant], int]] = []

    async def conform_client(
        name: str, start: object, entries: list[ClientVariant], *, drivers: int
    ) -> AsyncIterator[CaseFinished | SdkFinished]:
        del start
        runs.append((entries, drivers))
        cases = []
        for entry in entries:
            fails = len(runs) <= failures and entry is ENTRIES[0]
            result = Result.FAIL if fails else Result.PASS
            check = Check(id=f"{entry.id}#wire", result=result, level="must", rules=[])
            cases.append(CaseResult(case=entry.id, title="", checks=[check]))
            yield CaseFinished(name, CaseRun(cases[-1], []))
        yield SdkFinished(SdkResult(sdk=name, profiles=["client"], modes=[], cases=cases))

    monkeypatch.setattr(broken_clients, "conform_client", conform_client)
    program = ClientProgram("py", CHECKOUT)
    events = [e async for e in score_clients(program, [], ENTRIES, folder=tmp_path, jobs=3)]
    assert [type(event) for event in events[:-1]] == [
        ScoringStarted,
        *[BaselineCaseFinished] * len(ENTRIES),
    ]
    last = events[-1]
    assert isinstance(last, ScoringFinished)
    assert [a.check for a in last.alarms] == [f"{ENTRIES[0].id}#wire"] * (failures == 2)
    assert runs == [(ENTRIES, 3), *[([ENTRIES[0]], 1)] * (failures > 0)]


async def test_cases_that_a_good_client_never_ran_are_false_alarms(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without a driver no case was run, and the client passed all of them."""
    monkeypatch.setattr(broken_clients, "_start", lambda *_: _starting(_hang, [])())
    program = ClientProgram("py", CHECKOUT)
    *_, last = [e async for e in score_clients(program, [], ENTRIES, folder=tmp_path, jobs=1)]
    assert isinstance(last, ScoringFinished)
    assert {a.check.partition("#")[0] for a in last.alarms} == {entry.id for entry in ENTRIES}


async def test_a_broken_client_that_could_not_be_tested_is_tested_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tested: list[str] = []

    async def test(_: object, mutant: Mutant, *__: object) -> MutantResult:
        tested.append(mutant.id)
        is_late = tested.count(mutant.id) == 1 and mutant.id == late.id
        fate = Fate.UNTESTABLE if is_late else Fate.KILLED
        return result_of(mutant, fate, by="", got=[], cases=1, took_s=0)

    late, other, *_ = broken_clients.broken_clients()
    monkeypatch.setattr(broken_clients, "_test", test)
    program = ClientProgram("py", CHECKOUT)
    scored = score_clients(program, [late, other], [], folder=tmp_path, jobs=2)
    fates = {e.result.id: e.result.fate async for e in scored if isinstance(e, MutantFinished)}
    assert fates == {late.id: Fate.KILLED, other.id: Fate.KILLED}
    assert sorted(tested) == sorted([late.id, late.id, other.id])
