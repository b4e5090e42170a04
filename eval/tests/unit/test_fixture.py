"""The fixture of conformance cases while its daemon is not running."""

import signal
from pathlib import Path

import pytest

from memconform.conformance.case import DaemonSettings
from memconform.conformance.fixture import Fixture, UntestableError
from memconform.daemons.manifest import load_manifest
from memconform.daemons.manifest_runner import ManifestRunner
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
