"""The append-only journal of a run, which survives a kill of the harness.

Each stage of an attempt is a line of its own, written as soon as it is known and resumed
separately: an answer that was never judged is judged, not asked for again.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from memconform.errors import ResultsError
from memconform.ingest.records import IndexInvalidated, IndexVerified
from memconform.runs.plan import Settings
from memconform.runs.proven_attempts import Proofs, Retraction, Statement
from memconform.runs.stages import AnswerRecord, AttemptRecords, JudgementRecord, StageRecord
from memconform.storage.journal import JournalFile, JournalHeader, read_header, read_records
from memconform.storage.sink import write_whole

JOURNAL_SCHEMA: Literal["memconform/journal@3"] = "memconform/journal@3"
_WITHOUT_PROOFS = "memconform/journal@1"


class Header(JournalHeader):
    """The first line of a journal: the run, its SDK and its settings."""

    schema_version: Literal[
        "memconform/journal@1", "memconform/journal@2", "memconform/journal@3"
    ] = JOURNAL_SCHEMA
    run_id: str
    sdk: str
    dataset_path: str
    settings: Settings
    settings_sha256: str


@cache
def _reader() -> TypeAdapter[StageRecord | Statement]:
    return TypeAdapter(Annotated[StageRecord | Statement, Field(discriminator="stage")])


@dataclass(slots=True)
class _AttemptLocation:
    """Where an attempt is stored in the file."""

    number: int
    offsets: list[int] = field(default_factory=list)
    """Byte offsets of its records."""
    judged: bool = False


class Journal:
    """An append-only journal that can read back what it has written, question by question.

    Raises:
        ResultsError: from every method, if the file cannot be written or read.
    """

    def __init__(self, path: Path, header: Header) -> None:
        self.path = path
        self._lines = JournalFile(path, header)
        self._locations: dict[int, list[_AttemptLocation]] = {}
        """The attempts at each row."""
        self._proofs = Proofs()
        self.written = 0
        """Number of attempts so far."""
        self.adopted_modes: set[str] = set()
        """Modes in which the attempts of an earlier run were served."""
        try:
            # Opened once: opening takes 6 us, seeking 0.1 us.
            self._reader = path.open("rb")
        except OSError as error:
            raise _unreadable(path, str(error.strerror)) from error

    def write(self, *records: StageRecord) -> int:
        """Append stages of one attempt at a question; returns the attempt's number in this journal.

        The first stage determines the number, because an attempt ends with the daemon's answer,
        however long its judgement takes.
        """
        first = records[0]
        locations = self._locations.setdefault(first.row, [])
        if first.attempt == len(locations):
            locations.append(_AttemptLocation(self.written))
            self.written += 1
        location = locations[first.attempt]
        location.offsets += self._lines.append(*records)
        location.judged = isinstance(records[-1], JudgementRecord)
        return location.number

    def write_statement(self, statement: Statement) -> None:
        """Append a statement about attempts that ended earlier."""
        self._lines.append(statement)
        self._proofs.add(statement)

    @property
    def settled(self) -> int:
        """Number of attempts that are proven or invalidated."""
        return self._proofs.settled

    def is_settled(self, row: int) -> bool:
        """Whether every attempt at a question is judged, and proven or invalidated."""
        locations = self._locations.get(row, ())
        return all(location.judged and location.number < self.settled for location in locations)

    @property
    def is_empty(self) -> bool:
        """Whether the journal has no attempts."""
        return not self.written

    def attempts(self, row: int) -> int:
        """Number of attempts at a question, judged or not."""
        return len(self._locations.get(row, ()))

    def is_judged(self, row: int, repeat: int) -> bool:
        """Whether a question has at least `repeat` attempts and all of them are judged."""
        locations = self._locations.get(row, ())
        return len(locations) >= repeat and all(location.judged for location in locations)

    def unjudged(self, row: int) -> list[tuple[int, AnswerRecord]]:
        """Return `(number, answer)` of each attempt at a question that has no judgement.

        `number` counts the attempts at this question from 0. Attempts without an answer are
        omitted.

        Raises:
            ResultsError: if the journal cannot be read.
        """
        locations = enumerate(self._locations.get(row, ()))
        answers = [
            (n, self._read(row, n, location).answer)
            for n, location in locations
            if not location.judged
        ]
        return [(attempt, answer) for attempt, answer in answers if answer is not None]

    def adopt(self, earlier: Path, *, reverify: bool = True) -> None:
        """Copy the measured attempts of another journal, and answers that still need a judgement.

        Raises:
            UsageError: as `read_attempts`.
        """
        for records in adoptable_attempts(earlier, reverify=reverify):
            self.copy_attempt(records)
            if records.retrieval is not None:
                self.adopted_modes.add(records.retrieval.mode)
        if self.written:
            self.write_statement(IndexVerified(attempts=self.written, reproof=reverify))

    def copy_attempt(self, records: AttemptRecords) -> None:
        """Append an attempt of another journal, renumbered to follow this journal's attempts."""
        attempt = self.attempts(records.row)
        stages = records.records()
        if attempt != records.attempt:
            stages = [stage.model_copy(update={"attempt": attempt}) for stage in stages]
        self.write(*stages)

    def write_unread(self, records: AttemptRecords) -> None:
        """Append an attempt that nobody reads back from this journal, which takes no memory."""
        self._lines.append(*records.records())
        self.written += 1

    def write_attachment(self, name: str, data: bytes) -> None:
        """Write data that is too large for a record to a separate file next to the journal."""
        write_whole(self.path.parent / name, data)

    def read(self, row: int) -> Iterator[AttemptRecords]:
        """Read the attempts at one question; unproven ones count as unmeasured."""
        for attempt, location in enumerate(self._locations.get(row, ())):
            yield self._proofs.apply(self._read(row, attempt, location))

    def _read(self, row: int, attempt: int, location: _AttemptLocation) -> AttemptRecords:
        records = AttemptRecords(row, attempt, location.number)
        try:
            for offset in location.offsets:
                self._reader.seek(offset)
                record = _reader().validate_json(self._reader.readline())
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
            f"{self.path} was changed during the run",
            code="journal_unreadable",
            hint="do not modify a run's folder while the run is in progress",
        )

    def close(self, footer: dict[str, Any]) -> None:
        """Write the footer and close the journal; one without a footer was cut short."""
        self._reader.close()
        self._lines.close(**footer)


def read_attempts(
    path: Path, *, trusting: bool = False, strict: bool = False
) -> Iterator[AttemptRecords]:
    """Yield each attempt that the daemon answered or failed, with statements applied.

    Attempts at a question keep their order. Attempts without a judgement come from a run that ended
    before they were judged. An incomplete last line was being written when the run was killed and
    is dropped.

    Args:
        path: the journal's path.
        trusting: accept attempts of a version 1 journal, which has no proofs, as measured.
        strict: treat attempts as unproven if only counts were compared (--no-reverify).

    Raises:
        UsageError: as `read_header` and `read_records`.
    """
    old = read_header(path, Header).schema_version == _WITHOUT_PROOFS
    proofs = Proofs(trusting=trusting and old, strict=strict)
    for _, record in read_records(path, _reader(), prefixes=_STATEMENTS):
        if isinstance(record, Statement):
            proofs.add(record)
    pending: dict[tuple[int, int], AttemptRecords] = {}
    number = 0
    for _, record in read_records(path, _reader()):
        if isinstance(record, Statement):
            continue
        key = (record.row, record.attempt)
        if (attempt := pending.get(key)) is None:
            attempt = pending[key] = AttemptRecords(*key, number)
            number += 1
        attempt.add(record)
        while (attempt := pending.get(key)) is not None and attempt.judgement is not None:
            if any(row == key[0] and earlier < key[1] for row, earlier in pending):
                break
            yield proofs.apply(pending.pop(key))
            key = (key[0], key[1] + 1)
    for attempt in pending.values():
        # Versions 1 and 2 wrote an attempt in one go: an incomplete one was being written.
        if attempt.judgement is not None or (attempt.answer is not None and attempt.question_id):
            yield proofs.apply(attempt)


def adoptable_attempts(earlier: Path, *, reverify: bool = True) -> Iterator[AttemptRecords]:
    """Yield the attempts of a run that another run takes over.

    Unmeasured attempts are repeated, so that an outage does not persist in every later result.
    The run has proven its index after these attempts; without `reverify`, compared counts are
    sufficient.

    Raises:
        UsageError: as `read_attempts`.
    """
    for records in read_attempts(earlier, strict=reverify):
        if records.lacks_judgement:
            # The mask may hide text that the judge must see.
            if records.answer is not None and records.answer.redacted:
                continue
            records.judgement = None
        elif not records.measured:
            continue
        yield records


_STATEMENTS = tuple(
    f'{{"stage":{space}"{model.model_fields["stage"].default}"'.encode()
    for model in (IndexVerified, IndexInvalidated, Retraction)
    for space in ("", " ")
)
"""Prefixes of statement lines, as written by pydantic or by json."""


def _unreadable(path: Path, reason: str) -> ResultsError:
    return ResultsError(
        f"{path} cannot be read: {reason}",
        code="journal_unreadable",
        hint="give a run's folder below results/runs, or start a new run without --resume",
    )
