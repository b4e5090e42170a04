"""Follows runs by what they write: manifest, journal, result. Nothing else is asked of them."""

import json
import signal
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from memconform.scoring.statuses import QuestionStatus
from memconform.storage.folders import JOURNAL

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
        except (OSError, ValueError, KeyError, TypeError):
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
                    self._take(json.loads(line))
        except (OSError, ValueError):
            return

    def _take(self, record: dict[str, Any]) -> None:
        if record.get("stage") != "judgement":
            return
        status = str(record["verdict"])
        self.statuses[status] += 1
        if status != QuestionStatus.CORRECT:
            error = record.get("error") or {}
            reason = f"{error['code']}: {error['message']}" if error else record.get("reason", "")
            failure = {"id": str(record["id"]), "status": status, "reason": str(reason)[:500]}
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
            "left_s": round((self.total - done) / rate) if rate and self.total > done else None,
            "alive": alive,
            "started": datetime.fromtimestamp(self.started, UTC).strftime("%H:%M:%S UTC"),
        }


class Following:
    """The runs of a results folder."""

    def __init__(self, output: Path) -> None:
        self._output = output
        self._runs: dict[str, FollowedRun] = {}

    def snapshot(self) -> dict[str, Any]:
        """Runs without a result, newest first, and the number of finished ones."""
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
        alive = _writers(self._output / "runs") if running else {}
        shown = [
            run.snapshot(alive=name in alive)
            for name, run in sorted(self._runs.items(), reverse=True)
            if name in running
        ]
        return {"runs": shown, "finished": finished}

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
            if path.name == JOURNAL and path.parent.parent == runs and "r" not in file.mode:
                found[path.parent.name] = process
    return found
