"""What remains of a daemon, and in a daemon, once it is no longer measured."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from memconform.bench.daemon_system import DaemonSystem
from memconform.bench.raw_http import serving
from memconform.client.client import ContractClient
from memconform.client.timings import Timeouts
from memconform.contract.wire import Mode
from memconform.daemons.sdk_runner import Daemon, Launch, SdkRunner
from memconform.daemons.url_runner import UrlRunner
from memconform.errors import DaemonError, ResultsError
from memconform.ingest import monitor
from memconform.ingest.documents import Document
from memconform.measuring.daemon_session import daemon_session
from memconform.measuring.proven_brain import open_brain
from memconform.runs.events import RunFinished
from memconform.runs.schedule import execute
from memconform.storage import folders
from tests.adversarial.inprocess import FaultyRun, plan_of, write_dataset
from tests.fakes.scripted import ScriptedDaemon


class _Runner(SdkRunner):
    """Serves a daemon from this event loop, which writes to its state."""

    name = "scripted"

    def __init__(self, fault: str = "") -> None:
        self._fault = fault

    @asynccontextmanager
    async def serve(self, launch: Launch) -> AsyncIterator[Daemon]:
        launch.state.mkdir()
        (launch.state / "index").write_bytes(b"documents")
        async with (
            serving(ScriptedDaemon(self._fault, "", None).answer, "127.0.0.1", 0) as port,
            UrlRunner(f"http://127.0.0.1:{port}").serve(launch) as daemon,
        ):
            daemon.ready_ms = 7.0
            yield daemon


async def test_state_that_fills_the_disk_is_gone_before_the_log_is_masked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The masked copy had no room, and the state stayed as well."""

    def redact_file(log: Path) -> None:
        if (log.parent / "state").exists():
            raise ResultsError("no space left", code="results_unwritable", hint="")

    monkeypatch.setattr(folders, "redact_file", redact_file)
    launch = Launch(run_id="r", folder=tmp_path / "daemon")
    async with daemon_session(
        _Runner(), launch, "own", connections=1, timeouts=Timeouts(), headers={}
    ):
        assert launch.state.exists()
    assert not launch.state.exists()


class _Documents:
    """A corpus of three documents."""

    def documents(self) -> Iterator[Document]:
        for number in range(3):
            yield Document(f"{number}.md", f"word{number} of lorem".encode(), "text/markdown")


@pytest.mark.parametrize(
    ("fault", "stays", "left"),
    [
        ("", False, []),
        ("", True, ["mc-b"]),
        ("miscounts", False, []),
        ("hangs_on_ingest", False, []),
        ("not_searchable", False, []),
    ],
)
async def test_a_brain_of_a_running_daemon_is_deleted_however_its_use_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str, left: list[str], *, stays: bool
) -> None:
    """Those of a bench or a replay that failed or was interrupted remained there."""
    monkeypatch.setattr(monitor, "_DEATH_SECONDS", 0)
    created = asyncio.Event()

    class _Daemon(ScriptedDaemon):
        def _counts(self, brain_id: str) -> dict[str, Any]:
            created.set()
            return super()._counts(brain_id)

    daemon = _Daemon(fault, "", None)

    async def use(runner: UrlRunner) -> None:
        launch = Launch(run_id="r", folder=tmp_path / "daemon")
        async with (
            daemon_session(
                runner, launch, "own", connections=2, timeouts=Timeouts(), headers={}
            ) as session,
            open_brain(session, runner, "mc-b", _Documents(), stays=stays) as brain,
        ):
            await brain.prove(Mode.BM25)
            raise InterruptedError

    async with serving(daemon.answer, "127.0.0.1", 0) as port:
        using = asyncio.ensure_future(use(UrlRunner(f"http://127.0.0.1:{port}")))
        if fault == "hangs_on_ingest":
            await created.wait()
            using.cancel()
        with pytest.raises((DaemonError, InterruptedError, asyncio.CancelledError)):
            await using
        async with ContractClient(f"http://127.0.0.1:{port}") as client:
            assert list(await client.list_brains()) == left


async def test_what_a_daemon_without_a_version_took_to_start_is_known_to_run(
    tmp_path: Path,
) -> None:
    """Its result had no `ready_ms`: the version was read before the daemon was handed on."""
    plan = plan_of(
        FaultyRun((), "ask-basic", concurrency=1), write_dataset(tmp_path), tmp_path / "results"
    )
    [finished] = [
        event
        async for event in execute(plan, _Runner("no_version"))
        if isinstance(event, RunFinished)
    ]
    incident = finished.summary.incident
    assert incident is not None
    assert (incident.code, finished.summary.daemon.ready_ms) == ("no_version", 7.0)


async def test_what_a_daemon_without_a_version_took_to_start_is_known_to_bench(
    tmp_path: Path,
) -> None:
    system = DaemonSystem(_Runner("no_version"), (), tmp_path / "d", "r", "own", shared=False)
    with pytest.raises(DaemonError) as raised:
        async with system.open() as running, running.build_index([]):
            pass
    assert raised.value.code == "no_version"
    assert running.record().ready_ms == 7.0
