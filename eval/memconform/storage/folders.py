"""The results folder: one folder per run, and a copy of each SDK's last run of the day."""

import secrets
import shutil
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import NoReturn

from memconform.errors import UsageError, nearest
from memconform.storage.result_file import (
    WRITERS,
    require_result_of_run,
    run_id_of,
    schema_name,
    schema_of,
)
from memconform.storage.sink import copy_written, redact_file, unwritable

_PUBLISHED = "published"
JOURNAL = "journal.jsonl"

ROW_MARK = "#"
"""Separates the result of a bench from the row that is meant: `RESULT#SYSTEM/STRATEGY`."""


def new_run_id(started: datetime, sdk: str, scenario: str) -> str:
    """A run id that sorts by start time; its random suffix separates runs of one millisecond."""
    moment = f"{started:%Y%m%dT%H%M%S}{started.microsecond // 1000:03}Z"
    return f"{moment}-{sdk}-{scenario}-{secrets.token_hex(2)}"


class DaemonFolder:
    """The folder of a daemon's log and state, created at once.

    Raises:
        ResultsError: if the folder cannot be created (`results_unwritable`).
    """

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
        """The folder of the scripted upstream's log and state."""
        return self.path / "upstream"

    def redact_log(self) -> None:
        """Mask the secrets in the daemon's own output."""
        redact_file(self.log)

    def drop_state(self) -> None:
        """Remove the state of the daemon and of the upstream; results do not need it."""
        shutil.rmtree(self.path / "state", ignore_errors=True)
        shutil.rmtree(self.upstream / "state", ignore_errors=True)


class RunFolder(DaemonFolder):
    """The folder of one run, `<output>/runs/<run-id>/`.

    Raises:
        ResultsError: from any method that cannot write (`results_unwritable`).
    """

    def __init__(self, output: Path, run_id: str) -> None:
        super().__init__(output / "runs" / run_id)
        self._output = output

    @property
    def journal(self) -> Path:
        return self.path / JOURNAL

    @property
    def result(self) -> Path:
        return self.path / "result.json"

    def day_copy(self, started: datetime, sdk: str) -> Path:
        """Path of the result's published copy, `<output>/<date>/<sdk>.json`."""
        return self._output / f"{started:%Y-%m-%d}" / f"{sdk}.json"

    def publish(self, started: datetime, sdk: str) -> Path:
        """Copy the result to `<output>/<date>/<sdk>.json` and return that path."""
        target = self.day_copy(started, sdk)
        copy_written(self.result, target)
        return target

    def remove(self) -> None:
        """Delete the folder of a run that never began."""
        shutil.rmtree(self.path, ignore_errors=True)


def find_journal(output: Path, run: str) -> Path:
    """Find the journal of a run given by id, folder, result file or a copy of the result.

    Raises:
        UsageError: if no such run has a journal (`unknown_run`).
    """
    path = Path(run)
    run_id = run_id_of(path) if path.is_file() else None
    by_id = [path.parent.parent / "runs" / run_id, output / "runs" / run_id] if run_id else []
    folders = [path, path.parent] if path.exists() else []
    for folder in (*folders, output / "runs" / run, *by_id):
        if (folder / JOURNAL).is_file():
            return folder / JOURNAL
    if path.is_file():
        require_result_of_run(path)
    for folder in (path, output / "runs" / run):
        require_result_of_run(*sorted(folder.glob("*.json")))
    runs = sorted(path.name for path in (output / "runs").glob("*"))
    raise UsageError(
        f"no run {run!r} in {output / 'runs'}",
        code="unknown_run",
        hint=nearest(run, runs) or "name a run id, or its folder",
    )


def find_result(output: Path, run: str) -> Path:
    """Find the result of a run given by result file, folder or id.

    Raises:
        UsageError: if there is no such result (`unknown_run`), none yet (`no_result`), or one of
            another command (`result_unreadable`).
    """
    path = Path(run)
    for candidate in (path, path / "result.json", output / "runs" / run / "result.json"):
        if candidate.is_file():
            return candidate
    for folder in (path, output / "runs" / run):
        if (folder / JOURNAL).is_file():
            _raise_unfinished(folder)
        require_result_of_run(*sorted(folder.glob("*.json")))
    runs = sorted(result.parent.name for result in (output / "runs").glob("*/result.json"))
    raise UsageError(
        f"no result {run!r}, and no run of that name in {output / 'runs'}",
        code="unknown_run",
        hint=nearest(run, runs) or "name a result file, a run's folder, or a run id",
    )


def _raise_unfinished(folder: Path) -> NoReturn:
    """Raise UsageError `no_result` for the folder of a run that ended before its result."""
    schema = ""
    with suppress(OSError, ValueError, RecursionError):
        schema = schema_name(schema_of(folder / JOURNAL))
    _, how = WRITERS.get(schema, ("", "continue it with --resume"))
    raise UsageError(
        f"{folder} has no result: it was interrupted, or is still running",
        code="no_result",
        hint=how,
    )


def split_reference(reference: str) -> tuple[str, str]:
    """The result and the row of a reference `RESULT[#ROW]`; the row may be empty."""
    if ROW_MARK not in reference or Path(reference).exists():
        return reference, ""
    result, _, row = reference.rpartition(ROW_MARK)
    return result, row


def result_files(folder: Path) -> list[Path]:
    """The results in a folder of the replay, a file for each SDK; empty if it is none."""
    return sorted(folder.glob("result-*.json")) if folder.is_dir() else []


def results_below(folder: Path) -> list[Path]:
    """What has the name of a JSON file in a folder at any depth, results of runs before copies.

    A folder `published` in it is left out: what tables of documents are made from are no results
    of the user, and not whole.
    """
    files = (
        path for path in folder.rglob("*.json") if _PUBLISHED not in path.relative_to(folder).parts
    )
    return sorted(files, key=lambda path: (path.name != "result.json", path))
