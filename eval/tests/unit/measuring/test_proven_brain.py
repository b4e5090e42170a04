"""What the verification of a brain says of a daemon that does not answer it."""

import asyncio
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

from memconform.client.failures import CallError
from memconform.errors import DaemonError
from memconform.ingest import monitor
from memconform.ingest.monitor import DaemonMonitor
from memconform.ingest.verification import IndexChangedError, IndexUnansweredError
from memconform.measuring.proven_brain import ProvenBrain


class _Daemon:
    base_url = "http://127.0.0.1:1"

    def __init__(self) -> None:
        self.died = asyncio.Event()

    async def wait_exit(self) -> str:
        await self.died.wait()
        return "exit code -9"

    def log_tail(self) -> str:
        return "its last words"


@pytest.mark.parametrize(
    ("dies", "error", "raised"),
    [
        (True, IndexUnansweredError("no answer", code="brain_changed"), "daemon_died"),
        (False, IndexUnansweredError("nothing listens", code="daemon_gone"), "daemon_gone"),
        # It says no more than that nobody knows: three timeouts took all that was verified before.
        (False, IndexUnansweredError("no answer", code="brain_changed"), "brain_changed"),
        # It died, but before that its counts had changed.
        (True, IndexChangedError("other counts", code="brain_changed"), "brain_changed"),
    ],
)
async def test_a_daemon_that_does_not_answer_has_not_changed_its_index(
    monkeypatch: pytest.MonkeyPatch, error: DaemonError, raised: str, *, dies: bool
) -> None:
    """A change takes all that was asked of the index, also what was verified before."""
    monkeypatch.setattr(monitor, "_DEATH_SECONDS", 0)
    daemon = _Daemon()
    watch = DaemonMonitor(daemon)  # type: ignore[arg-type]

    async def verify() -> None:
        if dies:
            daemon.died.set()
            with suppress(CallError):
                await watch.call(asyncio.Event().wait())
        raise error

    unused: Any = None
    queries: Any = SimpleNamespace(verify=verify)
    brain = ProvenBrain(unused, watch, unused, queries, "b", None)
    with pytest.raises(DaemonError) as caught:
        await brain.verify()
    watch.close()
    assert caught.value.code == raised
    assert isinstance(caught.value, IndexChangedError) is isinstance(error, IndexChangedError)
