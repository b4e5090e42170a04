"""What `doctor` leaves in the temporary folder after a failed step."""

from pathlib import Path

from memconform import redaction
from memconform.cli.execute_doctor import _keep_logs


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
