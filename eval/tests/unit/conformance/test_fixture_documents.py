"""A document that a case begins with, and that is not where it should be, makes it untestable."""

import asyncio
import gc
import json
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest

from memconform.bench.raw_http import RawExchange, RawRequest
from memconform.concurrency import Slots
from memconform.conformance.case import Case
from memconform.conformance.case_runner import CaseRun, run_case
from memconform.conformance.catalog import CaseVariant, brain_id, catalog
from memconform.conformance.fixture import Fixture
from memconform.conformance.results import CaseResult, Result, SdkResult
from memconform.conformance.suite import SdkFinished, conform
from memconform.daemons.sdk_runner import Launch
from tests.fakes.degenerate import Degeneracy, DegenerateDaemon, DegenerateRunner

pytestmark = [
    # httpcore leaves transports open if a request is cancelled. They are collected here.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def _case(id_: str) -> CaseVariant:
    return next(entry for entry in catalog() if entry.id == id_)


def _run(runner: DegenerateRunner, id_: str, folder: Path) -> CaseResult:
    async def run() -> CaseResult:
        entry = _case(id_)
        async with Fixture(runner, entry.case.daemon, folder, "test") as fixture:
            await fixture.prepare()
            return (await run_case(entry, fixture, brain_id(entry))).result

    return asyncio.run(run())


def _own_checks(result: CaseResult) -> dict[str, Result]:
    checks = {check.id.partition("#")[2]: check.result for check in result.checks}
    return {slot: checks[slot] for slot in checks if slot not in ("wire", "alive")}


class _StoresElsewhere(DegenerateDaemon):
    """Gives every document another path."""

    def _ingest(self, brain: Any, body: Any) -> dict[str, Any]:
        return super()._ingest(brain, {**body, "path": "raw/" + str(body["path"])})


class _Loses(DegenerateDaemon):
    """Acknowledges every document, and has none."""

    def _store(self, brain: Any, path: str, content: bytes) -> None:
        del brain, path, content


def _runner(daemon: DegenerateDaemon) -> DegenerateRunner:
    runner = DegenerateRunner(Degeneracy("not_found"))
    runner.daemon = daemon
    return runner


@pytest.mark.parametrize("kind", [_StoresElsewhere, _Loses])
def test_a_document_that_is_not_stored_as_sent_makes_its_case_untestable(
    kind: type[DegenerateDaemon], tmp_path: Path
) -> None:
    result = _run(_runner(kind(Degeneracy("nothing"))), "search-nothing-found", tmp_path)
    assert _own_checks(result) == {"empty": Result.UNTESTABLE}
    assert "a.md" in result.checks[0].got[0]


def test_documents_of_the_store_are_laid_by_put_and_read_back(tmp_path: Path) -> None:
    routes: list[str] = []

    class Recording(DegenerateDaemon):
        async def answer(self, request: RawRequest, exchange: RawExchange) -> None:
            if "mc-doc-missing" in request.path and "folder" in request.path:
                routes.append(f"{request.method} {request.path.partition('?')[0].split('/', 4)[4]}")
            await super().answer(request, exchange)

    _run(_runner(Recording(Degeneracy("not_found"))), "doc-missing[folder]", tmp_path)
    assert routes[:2] == ["PUT documents", "GET documents/read"]


def test_a_missing_folder_is_no_proof_that_folders_are_not_documents(tmp_path: Path) -> None:
    """Doc-missing[folder] passed on a daemon that had stored `folder/a.md` elsewhere."""
    result = _run(_runner(_Loses(Degeneracy("not_found"))), "doc-missing[folder]", tmp_path)
    assert set(_own_checks(result).values()) == {Result.UNTESTABLE}


def test_a_rejection_by_a_daemon_that_rejects_everything_is_untestable(tmp_path: Path) -> None:
    runner = DegenerateRunner(Degeneracy("validation_error"))
    result = _run(runner, "search-refuse[empty]", tmp_path)
    assert _own_checks(result) == {"refused": Result.UNTESTABLE}
    assert "does not serve a valid request either" in result.checks[0].got[0]
    assert "/search: 400" in result.checks[0].got[0]


def test_a_failure_beside_a_missing_control_stays_a_failure(tmp_path: Path) -> None:
    runner = DegenerateRunner(Degeneracy("internal_error"))
    result = _run(runner, "search-refuse[empty]", tmp_path)
    assert _own_checks(result) == {"refused": Result.FAIL}


def test_a_launch_and_a_fixture_have_absolute_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative --output named files that did not exist for the daemon, which runs elsewhere."""
    monkeypatch.chdir(tmp_path)
    assert Launch(run_id="x", folder=Path("results")).folder == tmp_path / "results"
    runner = DegenerateRunner(Degeneracy("nothing"))
    fixture = Fixture(runner, _case("health").case.daemon, Path("results"), "x")
    assert fixture.outside == tmp_path / "results" / "outside.txt"


class _Hanging(DegenerateDaemon):
    """Answers nothing more after a search, until it is started anew."""

    fatal = "/search"
    """The end of the path after which it hangs."""

    def __init__(self, *, forever: bool = False) -> None:
        super().__init__(Degeneracy("nothing"))
        self.is_stuck = False
        self.forever = forever

    async def answer(self, request: RawRequest, exchange: RawExchange) -> None:
        self.is_stuck = self.is_stuck or self.forever or request.path.endswith(self.fatal)
        if self.is_stuck:
            await asyncio.Event().wait()
        await super().answer(request, exchange)

    def begin(self) -> None:
        self.is_stuck = False


def _conform(
    daemon: _Hanging, ids: list[str], folder: Path, *, can_restart: bool = True
) -> SdkResult:
    class Runner(DegenerateRunner):
        restartable = can_restart

        def serve(self, launch: Launch) -> Any:
            daemon.begin()
            return super().serve(launch)

    runner = Runner(Degeneracy("nothing"))
    runner.daemon = daemon

    async def run() -> SdkResult:
        events = conform(
            "hanging",
            lambda: runner,
            [_case(id_) for id_ in ids],
            known=(),
            folder=folder,
            run_id="x",
            slots=Slots(1),
        )
        results = [e.result async for e in events if isinstance(e, SdkFinished)]
        return results[0]

    try:
        return asyncio.run(run())
    finally:
        gc.collect()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for a tenth of a second instead of ten."""
    from memconform.conformance.case_requests import Sender  # noqa: PLC0415

    send = Sender.send

    async def send_shortly(self: Sender, request: Any, exchange: Any, seconds: float) -> Any:
        return await send(self, request, exchange, min(seconds, 0.2))

    monkeypatch.setattr(Sender, "send", send_shortly)
    # short limit: the daemon shares this process, and answers at once or never.
    monkeypatch.setattr("memconform.conformance.fixture._HEALTH_SECONDS", 1.0)


@pytest.mark.usefixtures("impatient")
def test_a_daemon_that_hangs_is_restarted_and_only_the_case_is_lost(tmp_path: Path) -> None:
    """Three cases in a row without an answer cost a daemon 509 checks."""
    searches = [f"search-empty-brain[{mode}]" for mode in ("auto", "bm25", "semantic", "hybrid")]
    others = [f"brain-id-accepted[{id_}]" for id_ in ("one", "mixed", "dots", "hyphen")]
    ids = [id_ for pair in zip(searches, others, strict=True) for id_ in pair]
    results = _conform(_Hanging(), ids, tmp_path).cases
    by_id = {result.case: set(_own_checks(result).values()) for result in results}
    assert {id_: by_id[id_] for id_ in others} == {id_: {Result.PASS} for id_ in others}
    assert {id_: by_id[id_] for id_ in searches} == {id_: {Result.FAIL} for id_ in searches}


class _HangsTwice(_Hanging):
    """Answers nothing before its third start, as on a machine that has no time for it."""

    fatal = "/never"

    def __init__(self) -> None:
        super().__init__(forever=True)
        self.starts = 0

    def begin(self) -> None:
        self.starts += 1
        self.is_stuck = self.forever = self.starts < 3


@pytest.mark.usefixtures("impatient")
def test_a_case_that_got_no_answer_at_all_is_repeated(tmp_path: Path) -> None:
    sdk = _conform(_HangsTwice(), ["search-empty-brain[bm25]"], tmp_path)
    assert set(_own_checks(sdk.cases[0]).values()) == {Result.PASS}
    assert sdk.repeated == ["search-empty-brain[bm25]"]


_FAILS: dict[str, Any] = {"http": "GET /healthz", "expect": {"never": {"status": 500}}}
_ENDLESS: dict[str, Any] = {"pause": 60_000}


@pytest.mark.parametrize(
    ("steps", "exit_reason", "timed_out"),
    [
        ([_ENDLESS], None, True),
        # What is measured counts, whatever the rest of the case would have said.
        ([_FAILS, _ENDLESS], None, False),
        ([_ENDLESS], "exit status 2", False),
        ([_FAILS], None, False),
    ],
)
def test_only_a_case_that_measured_nothing_timed_out(
    steps: list[dict[str, Any]],
    exit_reason: str | None,
    *,
    timed_out: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A daemon that crashed while its case waited passed when the case was repeated."""
    case = Case.model_validate({"id": "a", "title": "a", "rules": ["wire.json"], "steps": steps})
    # short limit: a stall before the first step ends the endless ones as well
    monkeypatch.setattr(Case, "limit_s", 5.0 if steps == [_FAILS] else 0.5)

    async def run() -> CaseRun:
        runner = DegenerateRunner(Degeneracy("nothing"))
        async with Fixture(runner, case.daemon, tmp_path, "test") as fixture:
            await fixture.prepare()
            if exit_reason is not None:
                monkeypatch.setattr(fixture, "unexpected_exit", AsyncMock(return_value=exit_reason))
            return await run_case(CaseVariant("a", "a", case, {}, "test.yaml"), fixture, "mc-a")

    assert asyncio.run(run()).timed_out is timed_out


@pytest.mark.usefixtures("impatient")
def test_a_daemon_that_hangs_from_the_start_is_given_up_with_a_word(tmp_path: Path) -> None:
    ids = [f"search-empty-brain[{mode}]" for mode in ("auto", "bm25", "semantic", "hybrid")]
    results = _conform(_Hanging(forever=True), ids, tmp_path).cases
    assert all(set(_own_checks(result).values()) == {Result.UNTESTABLE} for result in results)
    assert "after each of 3 starts in a row" in json.dumps(results[-1].checks[0].got)
    assert "after each of 3 starts" not in json.dumps(results[0].checks[0].got)


@pytest.mark.usefixtures("impatient")
def test_a_daemon_that_cannot_be_restarted_is_given_up_with_a_word(tmp_path: Path) -> None:
    ids = [f"search-empty-brain[{mode}]" for mode in ("auto", "bm25", "semantic", "hybrid")]
    ids.append("search-nothing-found")
    sdk = _conform(_Hanging(forever=True), ids, tmp_path, can_restart=False)
    results = sdk.cases
    assert "cannot restart a daemon that it did not start" in json.dumps(results[-1].checks[0].got)
