"""The fixture of conformance cases while its daemon is not running."""

import asyncio
import signal
from contextlib import AsyncExitStack
from pathlib import Path
from typing import cast

import pytest

from memconform.bench.raw_http import RawExchange, RawRequest, serving
from memconform.conformance.case import DaemonSettings
from memconform.conformance.fixture import Fixture, UntestableError
from memconform.daemons.manifest import load_manifest
from memconform.daemons.manifest_runner import ManifestRunner
from memconform.daemons.sdk_runner import Daemon
from tests.conftest import CHECKOUT


async def test_a_stopped_daemon_is_untestable(
    tmp_path: Path,
) -> None:
    folder = CHECKOUT / "sdks" / "py"
    runner = ManifestRunner(load_manifest(folder / "sdk.toml"), folder)
    fixture = Fixture(runner, DaemonSettings(), tmp_path, "test")
    with pytest.raises(UntestableError, match="is not running"):
        await fixture.inspect()
    with pytest.raises(UntestableError, match="is not running"):
        await fixture.end(signal.SIGTERM, 1)
    assert await fixture.unexpected_exit() is None


class _Dying:
    """A daemon whose connections break a moment before its port closes."""

    def __init__(self, port: int) -> None:
        self.base_url = f"http://127.0.0.1:{port}"
        self.process = self
        self.alive = True

    async def wait_exit(self) -> str:
        await asyncio.sleep(0)
        self.alive = False
        return "killed by SIGKILL"

    def tail(self) -> str:
        return "its log"


async def test_a_death_that_is_reported_late_is_of_the_case_whose_connection_broke(
    tmp_path: Path,
) -> None:
    """While the port was still open the case passed, and the next one found nobody."""
    folder = CHECKOUT / "sdks" / "py"
    runner = ManifestRunner(load_manifest(folder / "sdk.toml"), folder)
    fixture = Fixture(runner, DaemonSettings(), tmp_path, "test")
    async with serving(_never, "127.0.0.1", 0) as port:
        fixture._daemons["daemon"] = AsyncExitStack(), cast("Daemon", _Dying(port))
        assert await fixture.unexpected_exit() is None
        ended = await fixture.unexpected_exit(suspected=True)
    assert ended == "killed by SIGKILL\nits log"


async def _never(request: RawRequest, exchange: RawExchange) -> None:
    raise AssertionError((request, exchange))
