"""Where results lie: a folder a run, and a copy of each SDK's last run of the day."""

import secrets
import shutil
from datetime import datetime
from pathlib import Path

from memconform.errors import UsageError, nearest
from memconform.storage.result_file import run_id_of
from memconform.storage.writing import Masked, redact_file, replacing, unwritable

_JOURNAL = "journal.jsonl"


def new_run_id(started: datetime, sdk: str, scenario: str) -> str:
    """Sorts by time; the random end tells apart what starts in the same millisecond."""
    moment = f"{started:%Y%m%dT%H%M%S}{started.microsecond // 1000:03}Z"
    return f"{moment}-{sdk}-{scenario}-{secrets.token_hex(2)}"


class DaemonFolder:
    """Where a daemon keeps its log and its state; raises ResultsError where it cannot be made."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.path.mkdir(parents=True)
        except OSError as error:
            raise unwritable(self.path, error) from error

    @property
    def log(self) -> Path:
        return self.path / "daemon.log"

    @property
    def upstream(self) -> Path:
        """Of the scripted upstream's log."""
        return self.path / "upstream"

    def redact_log(self) -> None:
        """Take out of the daemon's own output what is secret."""
        redact_file(self.log)

    def drop_state(self) -> None:
        """Remove the daemon's state, and the upstream's, which a result does not need."""
        shutil.rmtree(self.path / "state", ignore_errors=True)
        shutil.rmtree(self.upstream / "state", ignore_errors=True)


class RunFolder(DaemonFolder):
    """`<output>/runs/<run-id>/`; every method raises ResultsError where it cannot write."""

    def __init__(self, output: Path, run_id: str) -> None:
        super().__init__(output / "runs" / run_id)
        self._output = output

    @property
    def journal(self) -> Path:
        return self.path / _JOURNAL

    @property
    def result(self) -> Path:
        return self.path / "result.json"

    def day_copy(self, started: datetime, sdk: str) -> Path:
        return self._output / f"{started:%Y-%m-%d}" / f"{sdk}.json"

    def publish(self, started: datetime, sdk: str) -> Path:
        """Copy the result to `<output>/<date>/<sdk>.json`."""
        target = self.day_copy(started, sdk)
        with replacing(target) as copy, self.result.open("rb") as result:
            for line in result:
                copy.write_masked(Masked(line))
        return target

    def remove(self) -> None:
        """Leave no trace of a run that never began."""
        shutil.rmtree(self.path, ignore_errors=True)


def find_journal(output: Path, run: str) -> Path:
    """The journal of a run that is named by its id, its folder, its result or a copy of that.

    Raises:
        UsageError: where there is none.
    """
    copy = Path(run)
    named = run_id_of(copy) if copy.is_file() else None
    beside = [copy.parent.parent / "runs" / named, output / "runs" / named] if named else []
    folders = [copy, copy.parent] if copy.exists() else []
    for folder in (*folders, output / "runs" / run, *beside):
        if (folder / _JOURNAL).is_file():
            return folder / _JOURNAL
    runs = sorted(path.name for path in (output / "runs").glob("*"))
    raise UsageError(
        f"no run {run!r} in {output / 'runs'}",
        code="unknown_run",
        hint=nearest(run, runs) or "name a run id, or its folder",
    )


def find_result(output: Path, run: str) -> Path:
    """The result of a run that is named by its file, its folder or its id.

    Raises:
        UsageError: where there is none.
    """
    named = Path(run)
    for path in (named, named / "result.json", output / "runs" / run / "result.json"):
        if path.is_file():
            return path
    runs = sorted(path.parent.name for path in (output / "runs").glob("*/result.json"))
    raise UsageError(
        f"no result {run!r}, and no run of that name in {output / 'runs'}",
        code="unknown_run",
        hint=nearest(run, runs) or "name a result file, a run's folder, or a run id",
    )
