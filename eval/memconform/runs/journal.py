"""The journal: what a run has learnt so far, safe against the harness being killed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from memconform.errors import ResultsError
from memconform.redaction import redact_bytes
from memconform.runs.append_only import AppendOnly
from memconform.runs.plan import Settings
from memconform.runs.results import (
    CallTimings,
    CitedChunk,
    Failure,
    RankedChunk,
    Record,
    Seen,
)
from memconform.scoring.verdicts import Verdict


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
    first_hit: int | None = None
    seen: Seen | None = None


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
    """Append-only; what it has written it can read again, question by question.

    Raises:
        ResultsError: from every method, where the file cannot be written or read.
    """

    def __init__(self, path: Path, header: Header) -> None:
        self.path = path
        self._lines = AppendOnly(path)
        self._places: dict[int, list[int]] = {}
        self._lines.append(header.model_dump(mode="json"))

    def write(self, row: int, records: list[StageRecord]) -> None:
        """Append the records of one attempt at a question."""
        self._places.setdefault(row, []).append(self._lines.offset)
        self._lines.append(*(record.model_dump(mode="json") for record in records))

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
            raise self._lines.unwritable(error) from error

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
        self._lines.close({"stage": "footer", **footer})


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
