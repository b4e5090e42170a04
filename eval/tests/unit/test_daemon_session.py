"""What remains of a daemon once it is stopped."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from memconform.bench.raw_http import serving
from memconform.client.timings import Timeouts
from memconform.daemons.runner import Daemon, Launch, SdkRunner
from memconform.daemons.url_runner import UrlRunner
from memconform.errors import ResultsError
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
