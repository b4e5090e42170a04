"""What `doctor` leaves in the temporary folder after a failed step."""

from collections.abc import AsyncIterator
from pathlib import Path
from unittest.mock import Mock

import pytest

from memconform import redaction
from memconform.cli.doctor import execution
from memconform.cli.doctor.execution import _keep_logs
from memconform.errors import ExitCode
from memconform.runs.doctor import Step


def test_after_a_failed_step_only_logs_stay_with_secrets_masked(tmp_path: Path) -> None:
    """A folder of each failure stayed whole, and the daemon's secrets with it."""
    folder = tmp_path / "memconform-x"
    for log in (folder / "daemon.log", folder / "upstream" / "daemon.log"):
        (log.parent / "state").mkdir(parents=True)
        (log.parent / "state" / "b.sqlite").touch()
        log.write_text("token canary-7d1f9a in use\n")
    (folder / "other" / "state").mkdir(parents=True)
    redaction.hide("canary-7d1f9a")
    _keep_logs(folder)
    left = sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))
    assert left == ["daemon.log", "upstream", "upstream/daemon.log"]
    assert "canary" not in (folder / "daemon.log").read_text()


def test_after_a_failure_without_a_log_nothing_stays(tmp_path: Path) -> None:
    folder = tmp_path / "memconform-x"
    (folder / "state").mkdir(parents=True)
    _keep_logs(folder)
    assert not folder.exists()


async def test_after_steps_that_all_pass_nothing_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def examined(_: object, folder: Path, *__: object, **___: object) -> AsyncIterator[Step]:
        (folder / "state").mkdir()
        yield Step("build", "up to date")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    runner = Mock(modes=None)
    runner.name = "mine"
    monkeypatch.setattr(execution, "find_runner", Mock(return_value=runner))
    monkeypatch.setattr(execution, "configure_runner", Mock())
    monkeypatch.setattr(execution, "examine", examined)
    options = Mock(env=(), quiet=True, keep=False)
    assert await execution._examine(options, "mine", {}) is ExitCode.OK
    assert list(tmp_path.iterdir()) == []  # noqa: ASYNC240 - nothing else runs
