"""The journal: what a run has learnt so far, safe against the harness being killed."""

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from memconform.errors import ResultsError
from memconform.redaction import redact_bytes, redact_values
from memconform.runs.plan import Settings
from memconform.runs.results import CallTimings, CitedChunk, Failure, RankedChunk, Record
from memconform.scoring.verdicts import Verdict

_FSYNC_SECONDS = 0.5


class Header(Record):
    """The first line of a journal: whose it is, and what was asked."""

    stage: Literal["header"] = "header"
    schema_version: Literal["memconform/journal@1"] = "memconform/journal@1"
    run_id: str
    sdk: str
    dataset_path: str
    settings: Settings
    settings_sha256: str


class RetrievalRecord(Record):
    stage: Literal["retrieval"] = "retrieval"
    row: int
    attempt: int
    mode: str
    ranking: list[RankedChunk]
    trace: dict[str, Any]
    timings: CallTimings


class AnswerRecord(Record):
    """The text that is scored, whether a reader wrote it or a search returned it."""

    stage: Literal["answer"] = "answer"
    row: int
    attempt: int
    text: str
    citations: list[CitedChunk]


class JudgementRecord(Record):
    """Ends an attempt; one without a score was not measured, and says why."""

    stage: Literal["judgement"] = "judgement"
    row: int
    attempt: int
    id: str
    """The question's, so that another version of the dataset is not taken for this one."""
    verdict: Verdict
    score: float | None
    error: Failure | None


StageRecord = RetrievalRecord | AnswerRecord | JudgementRecord

_READER: TypeAdapter[StageRecord] = TypeAdapter(
    Annotated[StageRecord, Field(discriminator="stage")]
)


class Journal:
    """Append-only; each write reaches the kernel at once and the disk about half a second later.

    Raises:
        ResultsError: from every method, where the file cannot be written or read.
    """

    def __init__(self, path: Path, header: Header) -> None:
        self.path = path
        try:
            self._file = path.open("xb", buffering=0)
        except OSError as error:
            raise self._unwritable(error) from error
        self._offset = 0
        self._places: dict[int, list[int]] = {}
        self._dirty = threading.Event()
        self._closing = threading.Event()
        self._sync_error: OSError | None = None
        # A thread, because an fsync of some milliseconds would show up in the latencies.
        self._syncer = threading.Thread(target=self._sync_often, name="journal-fsync", daemon=True)
        self._syncer.start()
        self._append(_line(header.model_dump(mode="json")))

    def write(self, row: int, records: list[StageRecord]) -> None:
        """Append the records of one attempt at a question."""
        data = b"".join(_line(record.model_dump(mode="json")) for record in records)
        self._places.setdefault(row, []).append(self._offset)
        self._append(data)

    def _append(self, data: bytes) -> None:
        try:
            if self._sync_error is not None:
                raise self._sync_error
            written = 0
            while written < len(data):
                written += self._file.write(data[written:])
        except OSError as error:
            raise self._unwritable(error) from error
        self._offset += len(data)
        self._dirty.set()

    def _sync_often(self) -> None:
        while not self._closing.wait(_FSYNC_SECONDS):
            if self._dirty.is_set():
                self._dirty.clear()
                try:
                    os.fsync(self._file.fileno())
                except OSError as error:
                    self._sync_error = error

    @property
    def is_empty(self) -> bool:
        """Whether nothing was measured yet."""
        return not self._places

    def attempts(self, row: int) -> int:
        """How many attempts at a question are journalled."""
        return len(self._places.get(row, ()))

    def adopt(self, earlier: Path) -> None:
        """Take over every attempt of another journal that was measured.

        What was not is asked again: an outage must not stay in every later result.

        Raises:
            ResultsError: where it cannot be read.
        """
        for records in read_attempts(earlier):
            judgement = records[-1]
            if isinstance(judgement, JudgementRecord) and judgement.verdict.measured:
                self.write(judgement.row, records)

    def keep_beside(self, name: str, data: bytes) -> None:
        """Write a file of its own beside the journal, for what is too large for a record."""
        path = self.path.parent / name
        try:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(redact_bytes(data))
        except OSError as error:
            raise self._unwritable(error) from error

    def read(self, row: int) -> Iterator[StageRecord]:
        """The records of one question, attempt after attempt, in the order of writing."""
        with self.path.open("rb") as file:
            for place in self._places.get(row, ()):
                file.seek(place)
                while True:
                    record = _READER.validate_json(file.readline())
                    yield record
                    if isinstance(record, JudgementRecord):
                        break

    def close(self, footer: dict[str, Any]) -> None:
        """End the journal; without this call it is the journal of a run that was cut short."""
        self._closing.set()
        self._syncer.join()
        try:
            self._append(_line({"stage": "footer", **footer}))
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._unwritable(error) from error
        finally:
            self._file.close()

    def _unwritable(self, error: OSError) -> ResultsError:
        return ResultsError(
            f"{self.path}: {error.strerror}",
            code="journal_unwritable",
            hint="check free space and permissions of the results folder; what was measured"
            f" so far is in {self.path}",
        )


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(redact_values(record), ensure_ascii=False).encode() + b"\n"


def read_header(path: Path) -> Header:
    """Raises ResultsError where `path` is no journal of ours."""
    try:
        with path.open("rb") as file:
            return Header.model_validate_json(file.readline())
    except OSError as error:
        raise _unreadable(path, str(error.strerror)) from error
    except ValidationError as error:
        raise _unreadable(path, "its first line is no header") from error


def read_attempts(path: Path) -> Iterator[list[StageRecord]]:
    """The records of each attempt that was finished, judgement last.

    A last line without its end was being written when the run was killed, and is dropped.

    Raises:
        ResultsError: naming a line that is no record.
    """
    attempt: list[StageRecord] = []
    with path.open("rb") as file:
        next(file)
        for number, line in enumerate(file, start=2):
            if not line.endswith(b"\n") or line.startswith(b'{"stage": "footer"'):
                return
            try:
                record = _READER.validate_json(line)
            except ValidationError as error:
                raise _unreadable(path, f"line {number} is no record") from error
            attempt.append(record)
            if isinstance(record, JudgementRecord):
                yield attempt
                attempt = []


def _unreadable(path: Path, why: str) -> ResultsError:
    return ResultsError(
        f"{path} cannot be read: {why}",
        code="journal_unreadable",
        hint="name a run's folder below results/runs, or start anew without --resume",
    )
