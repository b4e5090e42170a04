"""What the verification of a brain says of a daemon that does not answer it."""

import asyncio
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

from memconform.client.failures import CallError, DaemonFailedError
from memconform.errors import DaemonError
from memconform.ingest import monitor
from memconform.ingest.monitor import DaemonMonitor
from memconform.ingest.verification import IndexChangedError
from memconform.measuring.brain import ProvenBrain

_UNREACHABLE = DaemonFailedError("unreachable", "connection refused")
_REFUSED = DaemonFailedError("http_500", "the database is damaged")


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
    ("dies", "code", "cause", "raised", "is_change"),
    [
        (True, "brain_changed", _UNREACHABLE, "daemon_died", False),
        (False, "daemon_gone", _UNREACHABLE, "daemon_gone", False),
        (False, "brain_changed", _REFUSED, "brain_changed", True),
        # It died, but before that its counts had changed.
        (True, "brain_changed", None, "brain_changed", True),
    ],
)
async def test_a_daemon_that_is_gone_has_not_changed_its_index(
    monkeypatch: pytest.MonkeyPatch,
    code: str,
    cause: CallError | None,
    raised: str,
    *,
    dies: bool,
    is_change: bool,
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
        raise IndexChangedError("it has changed", code=code) from cause

    unused: Any = None
    queries: Any = SimpleNamespace(verify=verify)
    brain = ProvenBrain(unused, watch, unused, queries, "b", None)
    with pytest.raises(DaemonError) as caught:
        await brain.verify()
    watch.close()
    assert caught.value.code == raised
    assert isinstance(caught.value, IndexChangedError) is is_change
