"""Where results lie: a folder a run, and a copy of each SDK's last run of the day."""

import fcntl
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cache
from itertools import chain, takewhile
from pathlib import Path
from typing import IO, Any

from memconform.errors import ResultsError, UsageError, nearest
from memconform.records import Record
from memconform.redaction import MASK, redact_stream, redact_values
from memconform.runs.results import RESULT_SCHEMA, QuestionResult, RunSummary

_JOURNAL = "journal.jsonl"
_QUESTIONS_BEGIN = ' "questions": [\n'
_QUESTIONS_END = "]\n"
_TEMPORARY = re.compile(r"\..+\.\d+\.[0-9a-f]{8}")
_LOCKED_SECONDS = 60
"""Far more than a writer needs from the creation of its file to the lock."""


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
            raise _unwritable(self.path, error) from error

    @property
    def log(self) -> Path:
        return self.path / "daemon.log"

    @property
    def upstream(self) -> Path:
        """Of the scripted upstream's log."""
        return self.path / "upstream"

    def redact_log(self) -> None:
        """Take out of the daemon's own output what is secret."""
        if self.log.is_file():
            with self.log.open("rb") as log:
                masked = any(MASK.encode() in chunk for chunk in redact_stream(log))
            if masked:
                with self.log.open("rb") as log, replacing(self.log) as clean:
                    clean.writelines(redact_stream(log))

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
            shutil.copyfileobj(result, copy)
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
    named = _run_id_in(copy) if copy.is_file() else None
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


def _run_id_in(result: Path) -> str | None:
    """Whose result a file is; None for any other file."""
    try:
        loaded = json.loads(result.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    found = loaded.get("run_id") if isinstance(loaded, dict) else None
    return found if isinstance(found, str) else None


def read_questions(result: Path) -> Iterator[QuestionResult]:
    """The questions of a result, one in memory at a time where the lines are ours.

    Raises:
        ValueError: where the file ends before its questions do, or one is no question.
    """
    with result.open(encoding="utf-8") as lines:
        _, first = _begun(lines)
        if first is None:
            yield from map(QuestionResult.model_validate, _reformatted(result)[1])
            return
        for line in chain([first], lines):
            if line == _QUESTIONS_END:
                return
            if line != "\n":
                yield QuestionResult.model_validate_json(line.rstrip().removesuffix(","))
    raise ValueError(f"{result} ends before its questions do")


def is_result(path: Path) -> bool:
    """Whether a file calls itself the result of a run; raises OSError where it cannot be read."""
    with path.open("rb") as file:
        begin = file.read(256)
    if b'"schema_version"' in begin:
        return f'"{RESULT_SCHEMA}"'.encode() in begin
    try:
        return _reformatted(path)[0].get("schema_version") == RESULT_SCHEMA
    except ValueError:
        return False


def read_summary(result: Path) -> RunSummary:
    """A result without its questions; raises ValueError for what is none."""
    with result.open(encoding="utf-8") as lines:
        head, first = _begun(lines)
    if first is None:
        return RunSummary.model_validate(_reformatted(result)[0])
    return RunSummary.model_validate_json(head.rstrip().rstrip(",") + "}")


def _begun(lines: Iterator[str]) -> tuple[str, str | None]:
    """What stands before the questions, and their first line.

    None where another program set the lines: a question has one to itself only where we did.
    """
    head = "".join(takewhile(lambda line: line != _QUESTIONS_BEGIN, lines))
    first = next(lines, None)
    return head, None if first is not None and first.strip() == "{" else first


def _reformatted(result: Path) -> tuple[dict[str, Any], list[Any]]:
    """A result that went through another JSON program, such as jq, and is held whole."""
    try:
        loaded = json.loads(result.read_bytes())
    except RecursionError as error:
        raise ValueError(f"{result} is too deep") from error
    questions = loaded.pop("questions", None) if isinstance(loaded, dict) else None
    if not isinstance(questions, list):
        raise ValueError(f"{result} has no questions")  # noqa: TRY004 - a file, not an argument
    return loaded, questions


def write_result(target: IO[bytes], summary: Record, questions: Iterable[bytes]) -> None:
    """The summary's object, opened again for the list of questions, one a line."""
    told = redact_values(summary.model_dump(mode="json"))
    head = json.dumps(told, indent=1, ensure_ascii=False).removesuffix("\n}")
    target.write(f"{head},\n{_QUESTIONS_BEGIN}".encode())
    separator = b""
    for line in questions:
        target.write(separator + line.rstrip(b"\n"))
        separator = b",\n"
    target.write(b"\n" + _QUESTIONS_END.encode() + b"}\n")


@contextmanager
def replacing(target: Path) -> Iterator[IO[bytes]]:
    """A file that appears under its name whole, or not at all.

    Raises:
        ResultsError: where it cannot be written.
    """
    temporary = target.with_name(f".{target.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(target.parent.absolute())
        with temporary.open("xb") as file:
            _lock(file)
            yield file
            file.flush()
            os.fsync(file.fileno())
            # Before it is closed, and its lock gone.
            temporary.replace(target)
    except OSError as error:
        raise _unwritable(target, error) from error
    finally:
        temporary.unlink(missing_ok=True)


@cache
def _remove_abandoned(folder: Path) -> None:
    """Remove the temporary files of writers that were killed, once for each folder.

    A writer holds a lock on its file, which the kernel releases with its last breath. That is a
    better proof than its process id, which another process may have by now, and which means nothing
    where the folder is shared with other machines or containers. The age is for the moment between
    the creation of a file and its lock.
    """
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _TEMPORARY.fullmatch(entry.name) is None:
                continue
            with suppress(OSError):
                if time.time() - entry.stat(follow_symlinks=False).st_mtime < _LOCKED_SECONDS:
                    continue
                # For writing, which a lock needs on a network file system; where there are no
                # locks this fails, and the file stays.
                descriptor = os.open(entry.path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    Path(entry.path).unlink()
                finally:
                    os.close(descriptor)


def _lock(file: IO[bytes]) -> None:
    """Show others that the writer lives, where the file system has locks."""
    with suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _unwritable(path: Path, error: OSError) -> ResultsError:
    return ResultsError(
        f"cannot write {path}: {error.strerror}",
        code="results_unwritable",
        hint="choose another --output, or make room; the journal beside it holds what was measured",
    )
