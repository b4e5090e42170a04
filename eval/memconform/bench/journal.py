"""Reading the journal of an earlier bench, to resume from it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from memconform.bench.records import (
    BenchJournalHeader,
    BenchSettings,
    IndexRecord,
    JournalRecord,
    QueryRecord,
)
from memconform.errors import UsageError
from memconform.ingest.records import IndexInvalidated, IndexVerified
from memconform.storage.append_only import whole_lines


@cache
def _reader() -> TypeAdapter[JournalRecord]:
    return TypeAdapter(Annotated[JournalRecord, Field(discriminator="stage")])


def in_index(record: IndexRecord | QueryRecord, index: IndexVerified | IndexInvalidated) -> bool:
    """Whether a measurement was made in the index that was verified or invalidated, and in a mode
    that this concerns; an index that is invalid in one mode may be complete in others."""
    if record.system != index.system or index.haystack not in ("", record.haystack):
        return False
    if index.strategies is None:
        return True
    if isinstance(record, IndexRecord):
        return isinstance(index, IndexVerified)
    return record.strategy in index.strategies


@dataclass(frozen=True, slots=True)
class ResumeState:
    """Measurements of an earlier bench, made in indexes that were verified afterwards."""

    indexes: dict[tuple[str, str], IndexRecord] = field(default_factory=dict)
    """By system and haystack."""
    queries: dict[tuple[str, str, str], QueryRecord] = field(default_factory=dict)
    """By system, strategy and query; queries that were not measured, or not answered with
    `--answers`, are absent and run again."""
    _unverified: list[IndexRecord | QueryRecord] = field(default_factory=list, compare=False)
    """Measurements that no verification has followed yet."""

    def add(self, record: JournalRecord) -> None:
        """Apply the next record of the journal."""
        match record:
            # What the daemon's own reader failed to answer is asked again, as a failed search is.
            case IndexRecord() | QueryRecord(error=None, answer_error=None, redacted=False):
                self._unverified.append(record)
            case IndexVerified():
                for measurement in self._unverified:
                    if in_index(measurement, record):
                        self._accept(measurement)
                self._drop_unverified(record)
            case IndexInvalidated():
                self._drop_unverified(record)
                if record.strategies is None:
                    self.indexes.pop((record.system, record.haystack), None)
                for key, query in list(self.queries.items()):
                    if in_index(query, record):
                        del self.queries[key]

    def _drop_unverified(self, index: IndexVerified | IndexInvalidated) -> None:
        self._unverified[:] = [each for each in self._unverified if not in_index(each, index)]

    def _accept(self, record: IndexRecord | QueryRecord) -> None:
        match record:
            case IndexRecord():
                self.indexes[record.system, record.haystack] = record
            case QueryRecord():
                self.queries[record.system, record.strategy, record.query] = record

    def records(self) -> Iterator[JournalRecord]:
        """Records for the new journal, index by index, each followed by its verification."""
        for (system, haystack), index in self.indexes.items():
            verified = IndexVerified(system=system, haystack=haystack)
            yield index
            yield from (query for query in self.queries.values() if in_index(query, verified))
            yield verified


def load_resume_state(path: Path, settings: BenchSettings, systems: dict[str, str]) -> ResumeState:
    """Load the measurements of an earlier bench from its journal.

    A last line without a line end is dropped: the bench was killed while writing it.

    Raises:
        UsageError: if the file is not the journal of a bench (`journal_unreadable`), or of one with
            other settings (`resume_mismatch`).
    """
    state = ResumeState()
    try:
        lines = whole_lines(path)
        header = BenchJournalHeader.model_validate_json(next(lines)[1])
        _require_same_settings(path, header, settings, systems)
        for _, line in lines:
            record = _reader().validate_json(line)
            if record.system in systems:
                state.add(record)
    except (OSError, ValidationError, StopIteration) as error:
        raise UsageError(
            f"{path} is not the journal of a bench",
            code="journal_unreadable",
            hint="give a bench's folder below results/runs, or start anew without --resume",
        ) from error
    return state


def _require_same_settings(
    path: Path, header: BenchJournalHeader, settings: BenchSettings, systems: dict[str, str]
) -> None:
    earlier = header.settings.model_dump()
    differing = [name for name, value in settings.model_dump().items() if earlier[name] != value]
    differing += [
        name for name, identity in systems.items() if header.systems.get(name, identity) != identity
    ]
    if differing:
        raise UsageError(
            f"{path.parent} was measured with different settings: {', '.join(differing)}",
            code="resume_mismatch",
            hint="the benchmark, its options, the selection of queries, --index, -k, and each"
            " system's build, upstream and variables must be the same",
        )
