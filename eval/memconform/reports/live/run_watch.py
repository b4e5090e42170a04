"""Follows runs by what they write: manifest, journal, result. Nothing else is asked of them."""

import json
import signal
import threading
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
from pydantic import ValidationError

from memconform.runs.stages import JudgementRecord
from memconform.scoring.statuses import QuestionStatus
from memconform.storage.folders import JOURNAL

_LOOK_SECONDS = 2.0
"""Seconds between two searches for the processes that write runs."""
_FAILURES = 30
"""Failed questions that are shown of a run."""


@dataclass(slots=True)
class FollowedRun:
    """One run that has no result yet."""

    folder: Path
    sdk: str = ""
    title: str = ""
    total: int = 0
    """Attempts that it will make; 0 if its manifest does not say."""
    started: float = field(default_factory=time.time)
    statuses: Counter[str] = field(default_factory=Counter)
    """Judged attempts, by status."""
    failures: deque[dict[str, str]] = field(default_factory=lambda: deque(maxlen=_FAILURES))
    _offset: int = 0

    @classmethod
    def begin(cls, folder: Path) -> "FollowedRun | None":
        """Begin to follow a run; None until it has a manifest."""
        path = folder / "manifest.json"
        try:
            manifest = json.loads(path.read_bytes())
            settings = manifest["settings"]
            names = (settings["dataset"], settings["scenario"], settings["mode"])
            total = int(settings["questions"]) * int(settings.get("repeat") or 1)
            return cls(folder, str(manifest["sdk"]), ", ".join(names), total, path.stat().st_mtime)
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def read(self) -> None:
        """Take what was journalled since the last call; an incomplete last line waits."""
        try:
            with (self.folder / JOURNAL).open("rb") as file:
                file.seek(self._offset)
                for line in file:
                    if not line.endswith(b"\n"):
                        return
                    self._offset += len(line)
                    self._take(line)
        except OSError:
            return

    def _take(self, line: bytes) -> None:
        """Count a judgement; other stages, and lines of other versions, are passed over."""
        try:
            record = JudgementRecord.model_validate_json(line)
        except ValidationError:
            return
        self.statuses[record.verdict.value] += 1
        if record.verdict is not QuestionStatus.CORRECT:
            error = record.error
            reason = record.reason if error is None else f"{error.code}: {error.message}"
            failure = {"id": record.id, "status": record.verdict.value, "reason": reason[:500]}
            self.failures.append(failure)

    def snapshot(self, *, alive: bool) -> dict[str, Any]:
        """What the page shows: counts, rate, and what is left."""
        done = sum(self.statuses.values())
        elapsed = max(time.time() - self.started, 1e-3)
        rate = done / elapsed
        return {
            "id": self.folder.name,
            "sdk": self.sdk,
            "title": self.title,
            "total": self.total,
            "done": done,
            "statuses": dict(self.statuses),
            "failures": list(self.failures)[::-1],
            "rate": round(rate, 2),
            "left_s": round((self.total - done) / rate)
            if alive and rate and self.total > done
            else None,
            "alive": alive,
            "started": datetime.fromtimestamp(self.started, UTC).strftime("%H:%M:%S UTC"),
        }


class RunWatcher:
    """The runs of a results folder; its methods may be called from several threads."""

    def __init__(self, output: Path) -> None:
        self._output = output
        self._runs: dict[str, FollowedRun] = {}
        self._lock = threading.Lock()
        self._found: dict[str, psutil.Process] = {}
        self._looked = -_LOOK_SECONDS

    def snapshot(self) -> dict[str, Any]:
        """Runs without a result, newest first, and the number of finished ones."""
        with self._lock:
            return self._snapshot()

    def _snapshot(self) -> dict[str, Any]:
        finished = 0
        running: set[str] = set()
        for folder in sorted((self._output / "runs").glob("*")):
            if _has_result(folder):
                finished += 1
                self._runs.pop(folder.name, None)
                continue
            if folder.name not in self._runs:
                if (run := FollowedRun.begin(folder)) is None:
                    continue
                self._runs[folder.name] = run
            self._runs[folder.name].read()
            running.add(folder.name)
        alive = self._writers(running)
        shown = [
            run.snapshot(alive=name in alive)
            for name, run in sorted(self._runs.items(), reverse=True)
            if name in running
        ]
        return {"runs": shown, "finished": finished}

    def _writers(self, running: set[str]) -> dict[str, psutil.Process]:
        """The processes that write these runs, looked for at intervals: it takes time that a run
        which is being measured would lose."""
        self._found = {k: process for k, process in self._found.items() if process.is_running()}
        now = time.monotonic()
        if running - self._found.keys() and now - self._looked >= _LOOK_SECONDS:
            self._looked = now
            self._found = _writers(self._output / "runs")
        return self._found

    def stop(self, run_id: str) -> bool:
        """Interrupt the process that writes a run, as Ctrl-C does; False if none does.

        The process is found by the journal that it has open, so that no other process that was
        given the same number can be meant.
        """
        process = _writers(self._output / "runs").get(run_id)
        if process is None:
            return False
        try:
            process.send_signal(signal.SIGINT)
        except psutil.Error:
            return False
        return True


def _has_result(folder: Path) -> bool:
    return any((folder / name).is_file() for name in ("result.json", "conform.json"))


def _writers(runs: Path) -> dict[str, psutil.Process]:
    """The processes that have a journal below a folder open for writing, by the run's id."""
    runs = runs.resolve()
    found: dict[str, psutil.Process] = {}
    for process in psutil.process_iter():
        try:
            files = process.open_files()
        except psutil.Error:
            continue
        for file in files:
            path = Path(file.path)
            # Only Linux says how a file was opened; elsewhere a reader might be stopped.
            mode = getattr(file, "mode", "r")
            if path.name == JOURNAL and path.parent.parent == runs and "r" not in mode:
                found[path.parent.name] = process
    return found
