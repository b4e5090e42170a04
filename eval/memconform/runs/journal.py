"""The journal: what a run has learnt so far, safe against the harness being killed."""

from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from memconform.errors import ResultsError
from memconform.ingest.records import IndexInvalidated, IndexVerified
from memconform.records import Failure, Record
from memconform.runs.plan import Settings
from memconform.runs.results import (
    CallTimings,
    CitedChunk,
    RankedChunk,
    Seen,
    require_consistent,
)
from memconform.scoring.scorer import Score
from memconform.scoring.verdicts import Verdict
from memconform.storage.append_only import AppendOnly
from memconform.storage.writing import write_whole

JOURNAL_SCHEMA: Literal["memconform/journal@2"] = "memconform/journal@2"

_OF_THE_DAEMON = frozenset(
    {
        *("brain_changed", "daemon_gone", "index_not_proven", "index_pending"),
        *("not_confirmed", "not_searchable"),
    }
)
"""Codes of doubts that say what became of the daemon; all others are of what it sent."""
_UNPROVEN = Failure(
    code="index_not_proven",
    message="the index was not seen to be whole after this question",
)


class Header(Record):
    """The first line of a journal: whose it is, and what was asked."""

    stage: Literal["header"] = "header"
    schema_version: Literal["memconform/journal@1", "memconform/journal@2"] = JOURNAL_SCHEMA
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
    redacted: bool = False
    """Whether secrets are masked in the text that is stored; what was scored is the text itself."""


class JudgementRecord(Record):
    """Ends an attempt; one without a score was not measured, and says why."""

    stage: Literal["judgement"] = "judgement"
    row: int
    attempt: int
    id: str
    """The question's, so that another version of the dataset is not taken for this one."""
    verdict: Verdict
    score: float | None = Field(ge=0, le=1)
    error: Failure | None
    reason: str = ""
    """Why, where the scorer says so."""
    detail: dict[str, Any] = Field(default_factory=dict)
    """What else it says."""

    @classmethod
    def of(cls, score: Score, *, row: int, attempt: int, id: str) -> "JudgementRecord":  # noqa: A002 - the field's name
        """What a scorer says of an attempt; one that failed is no measurement, and says why."""
        status = score.status
        failed = None if status.measured else Failure(code=status.value, message=score.reason)
        return cls(
            row=row,
            attempt=attempt,
            id=id,
            verdict=status,
            score=score.value,
            error=failed,
            reason=score.reason,
            detail=dict(score.detail),
        )

    @model_validator(mode="after")
    def _must_agree(self) -> Self:
        require_consistent(self.verdict, self.score)
        return self


class Retraction(Record):
    """An attempt that was taken for measured, and is not: it could not be confirmed."""

    stage: Literal["retraction"] = "retraction"
    number: int
    """Of the attempt in this journal, from 0."""
    error: Failure


StageRecord = RetrievalRecord | AnswerRecord | JudgementRecord
Statement = IndexVerified | IndexInvalidated | Retraction
"""What is said of attempts after their end."""

_READER: TypeAdapter[StageRecord | Statement] = TypeAdapter(
    Annotated[StageRecord | Statement, Field(discriminator="stage")]
)


class Proofs:
    """Which attempts of a journal are measurements, by their number from 0.

    An attempt counts once its index was verified after its end, and unless it was invalidated or
    retracted. The same holds while a run lasts and when its journal is read again.
    """

    def __init__(self, *, trusting: bool = False, strict: bool = False) -> None:
        """`trusting` is for journals that were written before there were proofs.

        With `strict`, attempts do not count that --no-reproof was content with.
        """
        self._trusting = trusting
        self._strict = strict
        self._bounds: list[int] = []
        self._failures: list[Failure | None] = []
        self._retracted: dict[int, Failure] = {}

    @property
    def settled(self) -> int:
        """How many attempts something was said of."""
        return self._bounds[-1] if self._bounds else 0

    def add(self, statement: Statement) -> None:
        match statement:
            case Retraction():
                self._retracted[statement.number] = statement.error
            case IndexVerified(attempts=int() as bound):
                unproven = self._strict and not statement.reproof
                self._append(bound, _UNPROVEN if unproven else None)
            case IndexInvalidated(attempts=int() as bound):
                if statement.since is not None:
                    self._cut(statement.since)
                self._append(bound, statement.error)

    def _append(self, bound: int, failure: Failure | None) -> None:
        if bound > self.settled:
            self._bounds.append(bound)
            self._failures.append(failure)

    def _cut(self, since: int) -> None:
        """Forget what was said of attempts from `since` on."""
        failure: Failure | None = None
        while self.settled > since:
            self._bounds.pop()
            failure = self._failures.pop()
        self._append(since, failure)

    def apply(self, number: int, records: list[StageRecord]) -> list[StageRecord]:
        """An attempt as it counts: as it was measured, or why it is no measurement."""
        judgement = records[-1]
        if not isinstance(judgement, JudgementRecord) or not judgement.verdict.measured:
            return records
        failure = self._retracted.get(number)
        if failure is None:
            place = bisect_right(self._bounds, number)
            if place < len(self._bounds):
                failure = self._failures[place]
            elif not self._trusting:
                failure = _UNPROVEN
        if failure is None:
            return records
        of_daemon = failure.code in _OF_THE_DAEMON
        update = {
            "verdict": Verdict.DAEMON_ERROR if of_daemon else Verdict.PROTOCOL_ERROR,
            "score": None,
            "error": failure,
        }
        return [judgement.model_copy(update=update)]


class Journal:
    """Append-only; what it has written it can read again, question by question.

    Raises:
        ResultsError: from every method, where the file cannot be written or read.
    """

    def __init__(self, path: Path, header: Header) -> None:
        self.path = path
        self._lines = AppendOnly(path)
        self._places: dict[int, list[tuple[int, int]]] = {}
        """Of each row's attempts: where it begins, and its number."""
        self._proofs = Proofs()
        self.written = 0
        """Attempts so far."""
        self._lines.append(header)
        try:
            # Opened once: a run reads each attempt twice, and to open takes 6 us, to seek 0.1 us.
            self._reader = path.open("rb")
        except OSError as error:
            raise _unreadable(path, str(error.strerror)) from error

    def write(self, row: int, records: list[StageRecord]) -> None:
        """Append the records of one attempt at a question."""
        self._places.setdefault(row, []).append((self._lines.offset, self.written))
        self._lines.append(*records)
        self.written += 1

    def state(self, statement: Statement) -> None:
        """Append what is now known of attempts that ended before."""
        self._lines.append(statement)
        self._proofs.add(statement)

    @property
    def settled(self) -> int:
        """How many attempts are proven or invalidated."""
        return self._proofs.settled

    def is_settled(self, row: int) -> bool:
        """Whether all attempts at a question are proven or invalidated."""
        return all(number < self.settled for _, number in self._places.get(row, ()))

    @property
    def is_empty(self) -> bool:
        """Whether nothing was measured yet."""
        return not self._places

    def attempts(self, row: int) -> int:
        """How many attempts at a question are journalled."""
        return len(self._places.get(row, ()))

    def adopt(self, earlier: Path, *, reproof: bool = True) -> None:
        """Take over every attempt of another journal that is a measurement.

        What is not is asked again: an outage must not stay in every later result. That the index
        was whole was proven to the other run, after those attempts; without `reproof`, counts that
        were compared are enough.

        Raises:
            ResultsError: where it cannot be read.
        """
        for records in read_attempts(earlier, strict=reproof):
            judgement = records[-1]
            if isinstance(judgement, JudgementRecord) and judgement.verdict.measured:
                self.write(judgement.row, records)
        if self.written:
            self.state(IndexVerified(attempts=self.written, reproof=reproof))

    def keep_beside(self, name: str, data: bytes) -> None:
        """Write a file of its own beside the journal, for what is too large for a record."""
        write_whole(self.path.parent / name, data)

    def read(self, row: int) -> Iterator[StageRecord]:
        """The records of one question, attempt after attempt, each as it counts by now."""
        for place, number in self._places.get(row, ()):
            yield from self._proofs.apply(number, self._read_attempt(place))

    def _read_attempt(self, place: int) -> list[StageRecord]:
        records: list[StageRecord] = []
        try:
            self._reader.seek(place)
            while not (records and isinstance(records[-1], JudgementRecord)):
                record = _READER.validate_json(self._reader.readline())
                if isinstance(record, Statement):
                    raise self._changed()
                records.append(record)
        except ValidationError as error:
            raise self._changed() from error
        except OSError as error:
            raise _unreadable(self.path, str(error.strerror)) from error
        return records

    def _changed(self) -> ResultsError:
        return ResultsError(
            f"{self.path} was changed while it was written",
            code="journal_unreadable",
            hint="leave a run's folder alone while the run lasts",
        )

    def close(self, footer: dict[str, Any]) -> None:
        """End the journal; without this call it is the journal of a run that was cut short."""
        self._reader.close()
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


def read_attempts(
    path: Path, *, trusting: bool = False, strict: bool = False
) -> Iterator[list[StageRecord]]:
    """The records of each attempt that was finished, judgement last, as it counts in the end.

    A last line without its end was being written when the run was killed, and is dropped.

    Args:
        path: of the journal.
        trusting: take attempts of a journal of version 1, which holds no proofs, as they are.
        strict: take no attempts that --no-reproof was content with.

    Raises:
        ResultsError: naming a line that is no record.
    """
    old = read_header(path).schema_version != JOURNAL_SCHEMA
    proofs = Proofs(trusting=trusting and old, strict=strict)
    for record in _records(path, _STATEMENTS):
        if isinstance(record, Statement):
            proofs.add(record)
    attempt: list[StageRecord] = []
    number = 0
    for record in _records(path):
        if isinstance(record, Statement):
            continue
        attempt.append(record)
        if isinstance(record, JudgementRecord):
            yield proofs.apply(number, attempt)
            attempt = []
            number += 1


_STATEMENTS = tuple(
    f'{{"stage":{space}"{model.model_fields["stage"].default}"'.encode()
    for model in (IndexVerified, IndexInvalidated, Retraction)
    for space in ("", " ")
)
"""How their lines begin, written by pydantic or by json."""


def _records(path: Path, begins: tuple[bytes, ...] = ()) -> Iterator[StageRecord | Statement]:
    """Records, or those alone whose line begins so: to parse all of them twice takes seconds."""
    with path.open("rb") as file:
        next(file)
        for number, line in enumerate(file, start=2):
            if not line.endswith(b"\n") or line.startswith(b'{"stage": "footer"'):
                return
            if begins and not line.startswith(begins):
                continue
            try:
                yield _READER.validate_json(line)
            except ValidationError as error:
                raise _unreadable(path, f"line {number} is no record") from error


def _unreadable(path: Path, why: str) -> ResultsError:
    return ResultsError(
        f"{path} cannot be read: {why}",
        code="journal_unreadable",
        hint="name a run's folder below results/runs, or start anew without --resume",
    )
