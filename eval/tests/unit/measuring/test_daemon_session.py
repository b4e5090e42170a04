"""What remains of a daemon, and in a daemon, once it is no longer measured."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from memconform.bench.raw_http import serving
from memconform.client.client import ContractClient
from memconform.client.timings import Timeouts
from memconform.contract.wire import Mode
from memconform.daemons.runner import Daemon, Launch, SdkRunner
from memconform.daemons.url_runner import UrlRunner
from memconform.errors import DaemonError, ResultsError
from memconform.ingest import monitor
from memconform.ingest.documents import Document
from memconform.measuring.brain import open_brain
from memconform.measuring.daemon_session import daemon_session
from memconform.storage import folders
from tests.fakes.scripted import ScriptedDaemon


class _Runner(SdkRunner):
    """Serves a daemon from this event loop, which writes to its state."""

    name = "scripted"

    @asynccontextmanager
    async def serve(self, launch: Launch) -> AsyncIterator[Daemon]:
        launch.state.mkdir()
        (launch.state / "index").write_bytes(b"documents")
        async with (
            serving(ScriptedDaemon("", "", None).answer, "127.0.0.1", 0) as port,
            UrlRunner(f"http://127.0.0.1:{port}").serve(launch) as daemon,
        ):
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
