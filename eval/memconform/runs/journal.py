"""The journal: what a run has learnt so far, safe against the harness being killed.

Each stage of an attempt is a line of its own, written when it is there, and is resumed alone: an
answer that was never judged is judged, and not asked for again.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from memconform.errors import ResultsError
from memconform.ingest.records import IndexInvalidated, IndexVerified
from memconform.records import Record
from memconform.runs.plan import Settings
from memconform.runs.proofs import Proofs, Retraction, Statement
from memconform.runs.stages import AnswerRecord, AttemptRecords, JudgementRecord, StageRecord
from memconform.storage.append_only import AppendOnly
from memconform.storage.writing import write_whole

JOURNAL_SCHEMA: Literal["memconform/journal@3"] = "memconform/journal@3"
_WITHOUT_PROOFS = "memconform/journal@1"


class Header(Record):
    """The first line of a journal: whose it is, and what was asked."""

    stage: Literal["header"] = "header"
    schema_version: Literal[
        "memconform/journal@1", "memconform/journal@2", "memconform/journal@3"
    ] = JOURNAL_SCHEMA
    run_id: str
    sdk: str
    dataset_path: str
    settings: Settings
    settings_sha256: str


_READER: TypeAdapter[StageRecord | Statement] = TypeAdapter(
    Annotated[StageRecord | Statement, Field(discriminator="stage")]
)


@dataclass(slots=True)
class _Place:
    """Where an attempt is in the file."""

    number: int
    offsets: list[int] = field(default_factory=list)
    """Of its records."""
    judged: bool = False


class Journal:
    """Append-only; what it has written it can read again, question by question.

    Raises:
        ResultsError: from every method, where the file cannot be written or read.
    """

    def __init__(self, path: Path, header: Header) -> None:
        self.path = path
        self._lines = AppendOnly(path)
        self._places: dict[int, list[_Place]] = {}
        """Of each row's attempts."""
        self._proofs = Proofs()
        self.written = 0
        """Attempts so far."""
        self._lines.append(header)
        try:
            # Opened once: to open takes 6 us, to seek 0.1 us.
            self._reader = path.open("rb")
        except OSError as error:
            raise _unreadable(path, str(error.strerror)) from error

    def write(self, *records: StageRecord) -> int:
        """Append stages of one attempt at a question; the attempt's number in this journal.

        Its first stage gives it the number: an attempt ends with the daemon's answer, however long
        its judgement takes.
        """
        first = records[0]
        places = self._places.setdefault(first.row, [])
        if first.attempt == len(places):
            places.append(_Place(self.written))
            self.written += 1
        place = places[first.attempt]
        place.offsets += self._lines.append(*records)
        place.judged = isinstance(records[-1], JudgementRecord)
        return place.number

    def state(self, statement: Statement) -> None:
        """Append what is now known of attempts that ended before."""
        self._lines.append(statement)
        self._proofs.add(statement)

    @property
    def settled(self) -> int:
        """How many attempts are proven or invalidated."""
        return self._proofs.settled

    def is_settled(self, row: int) -> bool:
        """Whether all attempts at a question are judged, and proven or invalidated."""
        places = self._places.get(row, ())
        return all(place.judged and place.number < self.settled for place in places)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was measured yet."""
        return not self._places

    def attempts(self, row: int) -> int:
        """How many attempts at a question are journalled, judged or not."""
        return len(self._places.get(row, ()))

    def is_judged(self, row: int, repeat: int) -> bool:
        """Whether so many attempts at a question are journalled, and each of them judged."""
        places = self._places.get(row, ())
        return len(places) >= repeat and all(place.judged for place in places)

    def unjudged(self, row: int) -> list[tuple[int, AnswerRecord]]:
        """The attempts at a question that have no judgement, each with its answer."""
        places = enumerate(self._places.get(row, ()))
        found = [(n, self._read(row, n, place).answer) for n, place in places if not place.judged]
        return [(attempt, answer) for attempt, answer in found if answer is not None]

    def adopt(self, earlier: Path, *, reproof: bool = True) -> None:
        """Take over what another journal has measured: whole attempts, and answers to be judged.

        What is not measured is asked again: an outage must not stay in every later result. That the
        index was whole was proven to the other run, after those attempts; without `reproof`, counts
        that were compared are enough.

        Raises:
            ResultsError: where it cannot be read.
        """
        for records in read_attempts(earlier, strict=reproof):
            if records.lacks_judgement:
                # The mask may hide what a judge must see.
                if records.answer is not None and records.answer.redacted:
                    continue
                records.judgement = None
            elif not records.measured:
                continue
            self.take_over(records)
        if self.written:
            self.state(IndexVerified(attempts=self.written, reproof=reproof))

    def take_over(self, records: AttemptRecords) -> None:
        """Append an attempt of another journal, counted from 0 as the attempts of this one are."""
        attempt = self.attempts(records.row)
        stages = records.records()
        if attempt != records.attempt:
            stages = [stage.model_copy(update={"attempt": attempt}) for stage in stages]
        self.write(*stages)

    def keep_beside(self, name: str, data: bytes) -> None:
        """Write a file of its own beside the journal, for what is too large for a record."""
        write_whole(self.path.parent / name, data)

    def read(self, row: int) -> Iterator[AttemptRecords]:
        """The attempts at one question, each as it counts by now."""
        for attempt, place in enumerate(self._places.get(row, ())):
            yield self._proofs.apply(self._read(row, attempt, place))

    def _read(self, row: int, attempt: int, place: _Place) -> AttemptRecords:
        records = AttemptRecords(row, attempt, place.number)
        try:
            for offset in place.offsets:
                self._reader.seek(offset)
                record = _READER.validate_json(self._reader.readline())
                if isinstance(record, Statement) or (record.row, record.attempt) != (row, attempt):
                    raise self._changed()
                records.add(record)
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
        raise _unreadable(path, "its first line is not a header") from error


def read_attempts(
    path: Path, *, trusting: bool = False, strict: bool = False
) -> Iterator[AttemptRecords]:
    """Each attempt that the daemon answered or failed, as it counts in the end.

    Attempts at a question come in the order in which they were made. Those without a judgement are
    those of a run that ended before there was one. A last line without its end was being written
    when the run was killed, and is dropped.

    Args:
        path: of the journal.
        trusting: take attempts of a journal of version 1, which holds no proofs, as they are.
        strict: take no attempts that --no-reproof was content with.

    Raises:
        ResultsError: naming a line that is no record.
    """
    old = read_header(path).schema_version == _WITHOUT_PROOFS
    proofs = Proofs(trusting=trusting and old, strict=strict)
    for record in _records(path, _STATEMENTS):
        if isinstance(record, Statement):
            proofs.add(record)
    begun: dict[tuple[int, int], AttemptRecords] = {}
    number = 0
    for record in _records(path):
        if isinstance(record, Statement):
            continue
        key = (record.row, record.attempt)
        if (attempt := begun.get(key)) is None:
            attempt = begun[key] = AttemptRecords(*key, number)
            number += 1
        attempt.add(record)
        while (attempt := begun.get(key)) is not None and attempt.judgement is not None:
            if any(row == key[0] and earlier < key[1] for row, earlier in begun):
                break
            yield proofs.apply(begun.pop(key))
            key = (key[0], key[1] + 1)
    for attempt in begun.values():
        # Versions 1 and 2 wrote an attempt at once: what lacks its end was being written.
        if attempt.judgement is not None or (attempt.answer is not None and attempt.question_id):
            yield proofs.apply(attempt)


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
                raise _unreadable(path, f"line {number} is not a record") from error


def _unreadable(path: Path, why: str) -> ResultsError:
    return ResultsError(
        f"{path} cannot be read: {why}",
        code="journal_unreadable",
        hint="name a run's folder below results/runs, or start anew without --resume",
    )
