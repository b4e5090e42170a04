"""A mode's rows are measured if the index was proven for that mode, whatever happens in others."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest

from memconform.bench import schedule
from memconform.bench.daemon_system import _RunningDaemon
from memconform.bench.events import BenchEvent, BenchFinished, ModeHalted, SystemHalted
from memconform.bench.journal import ResumeState, load_resume_state
from memconform.bench.raw_http import RawExchange, serving
from memconform.bench.records import BenchReport, Row
from memconform.bench.schedule import execute_bench
from memconform.bench.strategy import strategies
from memconform.cli.bench.options import BenchOptions
from memconform.cli.bench.plan import PreparedBench, plan_bench
from memconform.cli.bench.systems import daemon_system
from memconform.contract.dialect import Dialect
from memconform.contract.wire import Mode
from memconform.daemons.sdk_runner import Launch, SdkRunner
from memconform.daemons.url_runner import UrlRunner
from memconform.errors import DaemonError
from memconform.ingest import indexing_time, monitor
from memconform.ingest.monitor import TIMEOUTS
from tests.fakes.scripted import ScriptedBrain, ScriptedDaemon

_VECTORS = ("semantic", "hybrid")


@pytest.fixture(autouse=True)
def _nothing_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """No overhead is measured, and no death awaited of a daemon that has no process."""
    monkeypatch.setattr(schedule, "overhead", AsyncMock(return_value=None))
    monkeypatch.setattr(monitor, "_DEATH_SECONDS", 0)


class _Daemon(ScriptedDaemon):
    """Keywords are searched without a fault; the modes that compare vectors have one."""

    def __init__(self, fault: str = "") -> None:
        super().__init__("", "", None)
        self._fault_of_vectors = fault
        self._queries = self._searches = 0
        self._alternates = False

    def _embeds_later(self) -> bool:
        """Whether its vectors are still missing, as they are for the first search."""
        self._searches += 1
        return self._fault_of_vectors == "embeds later" and self._searches == 1

    def _counts(self, brain_id: str) -> dict[str, Any]:
        counts = super()._counts(brain_id)
        missing = self._fault_of_vectors == "lacks a vector"
        return counts | {"vectors": counts["chunks"] - missing}

    async def _search(
        self, brain: ScriptedBrain, body: dict[str, Any], exchange: RawExchange
    ) -> None:
        if body["mode"] in _VECTORS and self._fault_of_vectors == "refuses":
            await exchange.problem(400, "validation_error", "no vectors here")
            return
        if body["mode"] in _VECTORS and self._fault_of_vectors == "fails":
            await exchange.problem(500, "internal_error", "the embedder is gone")
            return
        await super()._search(brain, body, exchange)

    def _retrieve(self, brain: ScriptedBrain, query: str, body: dict[str, Any]) -> dict[str, Any]:
        result = super()._retrieve(brain, query, body)
        if body["mode"] == "auto" and self._fault_of_vectors == "alternates":
            self._alternates = not self._alternates
            if self._alternates:
                result["trace"] |= {"effectiveMode": "hybrid", "embedderUsed": True}
        if body["mode"] not in _VECTORS:
            if self._fault_of_vectors == "finds null" and "paths" not in body.get("filters", {}):
                # The queries of the proof are no questions.
                result["chunks"] = None if query.endswith("?") else result["chunks"]
            return result
        fault = self._fault_of_vectors
        if self._embeds_later():
            result["chunks"] = []
            return result
        # What finds out which modes there are asks for one chunk.
        self._queries += body["mode"] == "hybrid" and body["topK"] > 1
        if fault == "serves bm25":
            result["trace"] |= {"effectiveMode": "bm25", "embedderUsed": False}
            return result
        paths = (body.get("filters") or {}).get("paths")
        known = {chunk["path"] for chunk in result["chunks"]}
        others = [p for p in brain.documents if p not in known and p in (paths or brain.documents)]
        # Vectors rank every document.
        chunks = result["chunks"] + [_chunk(brain, path) for path in others]
        if fault == "loses one" or (fault == "loses one later" and self._queries > 2):
            lost = next(iter(brain.documents))
            chunks = [chunk for chunk in chunks if chunk["path"] != lost]
        result["chunks"] = chunks[: body["topK"]]
        if fault == "shortens" and query.endswith("?"):
            result["chunks"] = result["chunks"][:5]
        if fault == "reorders":
            for score, chunk in enumerate(result["chunks"]):
                chunk["score"] = float(score)
        return result


def _chunk(brain: ScriptedBrain, path: str) -> dict[str, Any]:
    text = brain.documents[path]
    return {"chunkId": f"{path}#0", "documentId": path, "path": path, "score": 0.0, "text": text}


class _Runner(SdkRunner):
    """Serves a daemon from this event loop."""

    modes = (Mode.AUTO, Mode.BM25, Mode.SEMANTIC, Mode.HYBRID)

    def __init__(
        self, daemon: _Daemon | None, name: str = "one", dialect: Dialect | None = None
    ) -> None:
        """Without a daemon it does not start."""
        self.name = name
        self.dialect = dialect
        self._daemon = daemon

    def build_hash(self) -> str | None:
        return self.name

    @asynccontextmanager
    async def serve(self, launch: Launch) -> AsyncIterator["object"]:  # type: ignore[override]
        if self._daemon is None:
            raise DaemonError("it ended at once", code="daemon_not_ready", hint="see its log")
        async with (
            serving(self._daemon.answer, "127.0.0.1", 0) as port,
            UrlRunner(f"http://127.0.0.1:{port}").serve(launch) as daemon,
        ):
            yield daemon


async def _prepared(
    folder: Path, *runners: _Runner, index: Any, modes: str, rank_by: Any = None
) -> PreparedBench:
    options = BenchOptions(
        sdk=(), suite="sample", system=("null",), limit=6, index=index, modes=modes,
        rank_by=rank_by, upstream="own", output=folder, log_level="warning",
    )  # fmt: skip
    bench = await plan_bench(options, lambda _: None)
    searched = strategies([Mode(name) for name in modes.split(",")], {})
    systems = tuple(daemon_system(options, each, searched, {}, bench.folder) for each in runners)
    return replace(bench, plan=replace(bench.plan, systems=systems))


async def _bench(
    folder: Path,
    *runners: _Runner,
    index: str = "shared",
    modes: str = "bm25,hybrid",
    rank_by: str | None = None,
) -> tuple[BenchReport, list[BenchEvent], PreparedBench]:
    bench = await _prepared(folder, *runners, index=index, modes=modes, rank_by=rank_by)
    events = [each async for each in execute_bench(bench.plan, bench.folder, ResumeState())]
    assert isinstance(events[-1], BenchFinished)
    return events[-1].report, events, bench


def _row(report: BenchReport, strategy: str, system: str = "one") -> Row:
    [row] = [each for each in report.rows if (each.system, each.strategy) == (system, strategy)]
    return row


async def test_every_mode_of_a_daemon_without_a_fault_is_measured(tmp_path: Path) -> None:
    report, _, _ = await _bench(tmp_path, _Runner(_Daemon()), modes="hybrid,bm25,semantic")
    assert [row.measured for row in report.rows] == [True, True, True], report.rows
    assert report.exit_code == 0


@pytest.mark.parametrize(
    ("index", "modes"), [("shared", "bm25,hybrid"), ("isolated", "hybrid,bm25")]
)
@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("refuses", "http_400"),
        ("fails", "http_500"),
        ("lacks a vector", "index_incomplete"),
        ("loses one", "not_searchable"),
        ("loses one later", "not_searchable"),
        ("serves bm25", "mode_not_served"),
        ("reorders", "--rank-by position"),
    ],
)
async def test_a_mode_that_fails_does_not_take_the_rows_of_another(
    tmp_path: Path, fault: str, code: str, index: str, modes: str
) -> None:
    """One document that was not found in hybrid took the bm25 rows of the same command."""
    report, events, _ = await _bench(tmp_path, _Runner(_Daemon(fault)), index=index, modes=modes)
    measured = _row(report, "bm25")
    assert (measured.measured, measured.not_measured) == (True, 0), report.rows
    failed = _row(report, "hybrid")
    assert not failed.measured
    reason = " ".join(failed.why)
    assert code in reason or code.replace("http_", "") in reason, reason
    assert "bm25" not in failed.views
    assert report.exit_code == 3
    assert not [event for event in events if isinstance(event, SystemHalted)]


@pytest.mark.parametrize("fault", ["", "serves bm25", "alternates"])
async def test_auto_is_measured_in_one_mode_and_bm25_only_where_hybrid_is_served(
    tmp_path: Path, fault: str
) -> None:
    report, _, _ = await _bench(tmp_path, _Runner(_Daemon(fault)), modes="auto")
    row = _row(report, "auto")
    assert row.measured == (not fault), row.why
    assert fault == "" or "which stands for hybrid here" in " ".join(row.why)


async def test_a_mode_that_is_not_proven_is_reported_once(tmp_path: Path) -> None:
    _, events, _ = await _bench(tmp_path, _Runner(_Daemon("loses one")), index="isolated")
    [halted] = [event for event in events if isinstance(event, ModeHalted)]
    assert (halted.system, halted.mode, halted.error.code) == (
        *("one", Mode.HYBRID),
        "not_searchable",
    )


async def test_a_system_of_which_every_mode_fails_is_halted(tmp_path: Path) -> None:
    report, events, _ = await _bench(
        tmp_path, _Runner(_Daemon("loses one")), modes="semantic,hybrid"
    )
    assert [event for event in events if isinstance(event, SystemHalted)]
    assert not any(row.measured for row in report.rows)
    assert all("not_searchable" in row.why[0] for row in report.rows)


async def test_an_sdk_that_does_not_start_leaves_the_rows_of_another(tmp_path: Path) -> None:
    report, _, _ = await _bench(
        tmp_path, _Runner(None, "dead"), _Runner(_Daemon(), "well"), modes="bm25"
    )
    assert _row(report, "bm25", "well").measured
    assert _row(report, "bm25", "dead").why == ["daemon_not_ready: it ended at once"]
    assert report.exit_code == 3


async def test_a_resumed_bench_keeps_the_rows_of_the_mode_that_was_proven(tmp_path: Path) -> None:
    """What a lost mode retrieved before it was lost counts no more, and is asked again."""
    report, _, bench = await _bench(tmp_path, _Runner(_Daemon("loses one later")))
    systems = {system.name: system.identity for system in bench.plan.systems}
    kept = load_resume_state(bench.folder.journal, report.settings, systems)
    assert {strategy for _, strategy, _ in kept.queries} == {"bm25"}
    assert len(kept.queries) == 6
    again = await _prepared(tmp_path / "b", _Runner(_Daemon()), index="shared", modes="bm25,hybrid")
    last = [each async for each in execute_bench(again.plan, again.folder, kept)][-1]
    assert isinstance(last, BenchFinished)
    assert [row.measured for row in last.report.rows] == [True, True]


@pytest.mark.parametrize("dialect", [None, Dialect()])
async def test_a_ranking_without_near_duplicates_is_measured_of_a_daemon_with_a_dialect(
    tmp_path: Path, dialect: Dialect | None
) -> None:
    """A public daemon returned 19 of 20 chunks, and the question was lost."""
    runner = _Runner(_Daemon("shortens"), dialect=dialect)
    report, _, _ = await _bench(tmp_path, runner, modes="hybrid")
    row = _row(report, "hybrid")
    is_foreign = dialect is not None
    assert (row.measured, row.short_rankings) == (is_foreign, 6 if is_foreign else 0)
    assert is_foreign or "short_ranking" in row.why[0]


async def test_a_question_that_finds_null_is_measured_as_an_empty_ranking(tmp_path: Path) -> None:
    """Abstention questions were lost on a daemon that answers null where nothing is found."""
    report, _, bench = await _bench(tmp_path, _Runner(_Daemon("finds null")), modes="bm25")
    row = _row(report, "bm25")
    assert row.measured, row.why
    assert row.null_lists == 6
    assert row.views["all"].metrics["recall_any@5"].value == 0
    assert len(bench.folder.journal.read_text().split('"null_chunks":true')) == 7


async def test_the_first_search_may_come_before_the_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A daemon that embeds in the background failed to be seeded in one of 40 starts."""
    monkeypatch.setattr(indexing_time, "_PAUSE_SECONDS", 0)
    # It does not say what is pending.
    dialect = Dialect.model_validate({"objects": {"brain": {"pending": False}}})
    runner = _Runner(_Daemon("embeds later"), dialect=dialect)
    report, _, _ = await _bench(tmp_path, runner, modes="semantic")
    assert _row(report, "semantic").measured, report.rows


@pytest.mark.parametrize(
    ("declared", "flag", "is_measured"),
    [
        ("score", None, False),
        ("score", "position", True),
        ("position", None, True),
        ("position", "score", False),
    ],
)
async def test_a_dialect_says_once_that_rankings_are_reordered(
    tmp_path: Path, declared: Any, flag: str | None, *, is_measured: bool
) -> None:
    runner = _Runner(_Daemon("reorders"), dialect=Dialect(rank_by=declared))
    report, _, _ = await _bench(tmp_path, runner, modes="hybrid", rank_by=flag)
    row = _row(report, "hybrid")
    assert (row.measured, row.rising_scores) == (is_measured, 6 if is_measured else 0)
    if is_measured:
        assert report.systems[0].rank_by == "position"


def test_a_mode_whose_searches_are_stuck_is_lost_alone() -> None:
    stuck = SimpleNamespace(halted=DaemonError("three timeouts", code=TIMEOUTS, hint=""))
    died = SimpleNamespace(halted=DaemonError("it died", code="daemon_died", hint=""))
    monitors: Any = {
        Mode.HYBRID: stuck,
        Mode.BM25: died,
        Mode.SEMANTIC: SimpleNamespace(halted=None),
    }
    parts: Any = SimpleNamespace()
    running = _RunningDaemon(parts, parts, parts, monitors)
    assert {mode: error.code for mode, error in running.lost.items()} == {Mode.HYBRID: TIMEOUTS}
