"""A daemon that indexes in the background gets the time that its sdk.toml gives it, and no more."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from memconform.bench.raw_http import RawExchange, RawRequest, serving
from memconform.client.client import ContractClient
from memconform.contract.wire import Mode
from memconform.daemons.manifest import Seed
from memconform.daemons.url_runner import RunningDaemon
from memconform.errors import DaemonError
from memconform.ingest import indexing_time
from memconform.ingest.documents import Document, InMemoryCorpus
from memconform.ingest.indexing_time import Clock
from memconform.ingest.seeding import SeededBrain, seeded_brain
from memconform.runs.doctor_checks import Checks
from tests.adversarial.inprocess import InProcessRunner
from tests.fakes.scripted import LATE_SEARCHES, ScriptedDaemon

_DOCUMENTS = [
    Document(f"raw/{n}.md", f"note {n} keeps word{n}x and term{n}y apart".encode(), "text/plain")
    for n in range(30)
]


class _VirtualClock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.pauses: list[float] = []
        self.clock = Clock(lambda: self.now, self._sleep)

    async def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


class _Daemon(ScriptedDaemon):
    """Counts its requests; its documents are counted, or become searchable, at a time."""

    def __init__(self, fault: str = "", time: _VirtualClock | None = None, due: float = 0) -> None:
        super().__init__(fault, "", None)
        self._time = time or _VirtualClock()
        self._due = self._time.now + due
        self.requests = 0

    @property
    def is_due(self) -> bool:
        return self._time.now >= self._due

    async def answer(self, request: RawRequest, exchange: RawExchange) -> None:
        self.requests += 1
        await super().answer(request, exchange)


class _LateSearch(_Daemon):
    """Nothing is pending, and nothing is found before its time, as of one public daemon."""

    def _retrieve(self, brain: Any, query: str, body: dict[str, Any]) -> dict[str, Any]:
        found = super()._retrieve(brain, query, body)
        return found if self.is_due else found | {"chunks": []}


class _LateCounts(_Daemon):
    """Counts no document before its time, and none as pending."""

    def _counts(self, brain_id: str) -> dict[str, Any]:
        counts = super()._counts(brain_id)
        return counts if self.is_due else counts | {"documents": 0, "chunks": 0}


class _LateVectors(_Daemon):
    """Serves mode semantic as bm25 before its time."""

    def _counts(self, brain_id: str) -> dict[str, Any]:
        counts = super()._counts(brain_id)
        return counts | {"vectors": counts["chunks"] if self.is_due else 0}

    def _retrieve(self, brain: Any, query: str, body: dict[str, Any]) -> dict[str, Any]:
        found = super()._retrieve(brain, query, body)
        if not self.is_due:
            found["trace"] |= {"effectiveMode": "bm25", "embedderUsed": False}
            found["trace"] |= {"fellBackToBm25": True}
        return found


@asynccontextmanager
async def _seeded(
    daemon: ScriptedDaemon,
    time: _VirtualClock,
    *,
    timeout_s: float | None = 60,
    mode: Mode = Mode.BM25,
) -> AsyncIterator[SeededBrain]:
    runner = InProcessRunner([])
    runner.modes = (Mode.BM25, Mode.SEMANTIC)
    runner.seed = Seed(via="batch", timeout_s=timeout_s)
    async with (
        serving(daemon.answer, "127.0.0.1", 0) as port,
        ContractClient(f"http://127.0.0.1:{port}") as client,
        seeded_brain(
            client, runner, RunningDaemon(client.base_url), "b", InMemoryCorpus(_DOCUMENTS), [mode],
            clock=time.clock,
        ) as seeded,
    ):  # fmt: skip
        yield seeded


@pytest.mark.parametrize(
    ("kind", "mode"),
    [(_LateSearch, Mode.BM25), (_LateCounts, Mode.BM25), (_LateVectors, Mode.SEMANTIC)],
)
async def test_documents_that_are_searchable_20_s_after_ingest_are_proven(
    kind: type[_Daemon], mode: Mode
) -> None:
    """With pending 0 the proof was made once, though [seed] timeout_s was 60 (issue 36)."""
    time = _VirtualClock()
    async with _seeded(kind(time=time, due=20), time, mode=mode) as seeded:
        record = seeded.record
    assert record.proof is not None
    assert record.proof.modes == [mode.value]
    assert 20 <= sum(time.pauses) <= 25
    assert 20_000 <= record.took_ms <= 26_000
    if kind is not _LateCounts:
        assert record.proof.after_ms == pytest.approx(sum(time.pauses) * 1e3)
        assert record.proof.describe().endswith(f", after {sum(time.pauses):.3g} s")
    assert (seeded.counts.documents, seeded.counts.chunks) == (30, 30)


async def test_a_daemon_that_never_indexes_ends_at_its_limit_and_says_the_time() -> None:
    time = _VirtualClock()
    daemon = _LateSearch(time=time, due=61)
    with pytest.raises(DaemonError, match=r"30 of 30 .* last tried after 60 s$") as caught:
        async with _seeded(daemon, time):
            pass
    assert caught.value.code == "not_searchable"
    assert "timeout_s" not in caught.value.hint
    assert sum(time.pauses) == pytest.approx(60)
    # An attempt in between stops at the first documents that are missing.
    attempts = len(time.pauses)
    assert daemon.searches < 30 * 3 + 20 + attempts * 20


async def test_without_a_time_to_wait_the_first_failure_counts_and_names_the_setting() -> None:
    time = _VirtualClock()
    with pytest.raises(DaemonError, match=r"30 of 30 ingested documents: [^;]*$") as caught:
        async with _seeded(_LateSearch(time=time, due=20), time, timeout_s=None):
            pass
    assert "[seed] timeout_s = 60" in caught.value.hint
    assert time.pauses == []


async def test_a_healthy_daemon_pays_nothing_for_the_time_that_it_has() -> None:
    requests = []
    for timeout_s in (None, 60):
        time, daemon = _VirtualClock(), _Daemon()
        async with _seeded(daemon, time, timeout_s=timeout_s) as seeded:
            assert seeded.record.proof is not None
            assert seeded.record.proof.after_ms is None
        assert time.pauses == []
        requests.append(daemon.requests)
    assert requests[0] == requests[1]


async def test_pending_documents_and_a_late_index_share_one_limit() -> None:
    time = _VirtualClock()
    with pytest.raises(
        DaemonError, match=r"3 documents of brain 'b' are still pending after 60 s$"
    ):
        async with _seeded(_Daemon("stays_pending"), time):
            pass
    assert sum(time.pauses) == pytest.approx(60, abs=0.2)


async def test_a_fault_that_no_time_heals_is_not_waited_for() -> None:
    time = _VirtualClock()
    with pytest.raises(DaemonError, match="acknowledged as") as caught:
        async with _seeded(_Daemon("truncates"), time):
            pass
    assert (caught.value.code, time.pauses) == ("index_incomplete", [])


async def test_a_daemon_that_indexes_late_passes_the_check_of_doctor(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    del tmp_path
    monkeypatch.setattr(indexing_time, "_PAUSE_SECONDS", 0)
    daemon, runner = ScriptedDaemon("indexes_late", "", None), InProcessRunner([])
    runner.seed = Seed(timeout_s=60)
    async with (
        serving(daemon.answer, "127.0.0.1", 0) as port,
        ContractClient(f"http://127.0.0.1:{port}") as client,
    ):
        line = await Checks(runner, RunningDaemon(client.base_url), client, "b").ingest()
    assert line.startswith("3 documents ingested by http and found by their words after ")
    assert daemon.searches > LATE_SEARCHES
