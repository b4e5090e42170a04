"""Reading the journal of an earlier bench, to resume from it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter

from memconform.bench.records import (
    BenchJournalHeader,
    BenchSettings,
    IndexRecord,
    JournalRecord,
    QueryRecord,
)
from memconform.errors import UsageError
from memconform.ingest.records import IndexInvalidated, IndexVerified
from memconform.measuring.validity import Validity
from memconform.storage.journal import read_header, read_records, require_same_settings


@cache
def _reader() -> TypeAdapter[JournalRecord]:
    return TypeAdapter(Annotated[JournalRecord, Field(discriminator="stage")])


@dataclass(frozen=True, slots=True)
class ResumeState:
    """Measurements of an earlier bench, made in indexes that were verified afterwards."""

    indexes: dict[tuple[str, str], IndexRecord] = field(default_factory=dict)
    """By system and haystack."""
    queries: dict[tuple[str, str, str], QueryRecord] = field(default_factory=dict)
    """By system, strategy and query; queries that were not measured, or not answered with
    `--answers`, are absent and run again."""

    def records(self) -> Iterator[JournalRecord]:
        """Records for the new journal, index by index, each followed by its verification."""
        for (system, haystack), index in self.indexes.items():
            verified = IndexVerified(system=system, haystack=haystack)
            yield index
            yield from (
                query
                for query in self.queries.values()
                if verified.is_of(query.system, query.haystack)
            )
            yield verified


def _resumed(records: Iterable[JournalRecord]) -> ResumeState:
    """What counts of the records of a journal."""
    indexes: dict[tuple[str, str], IndexRecord] = {}
    complete: set[tuple[str, str]] = set()
    queries: dict[tuple[str, str, str], QueryRecord] = {}
    validity = Validity[tuple[str, str, str]]()
    for record in records:
        match record:
            case IndexRecord():
                indexes[record.system, record.haystack] = record
                validity.replace_index(record.system, record.haystack)
            # What the daemon's own reader failed to answer is asked again, as a failed search is.
            case QueryRecord(error=None, answer_error=None, redacted=False):
                queries[record.key] = record
                validity.add(record.key, record.place)
            case IndexVerified() | IndexInvalidated():
                validity.apply(record)
                concerned = {each for each in indexes if record.is_of(*each)}
                if isinstance(record, IndexVerified):
                    complete |= concerned
                elif record.strategies is None:
                    complete -= concerned
    return ResumeState(
        {key: index for key, index in indexes.items() if key in complete},
        {
            key: query
            for key, query in queries.items()
            if validity.counts(key)
            and not complete.isdisjoint({(query.system, query.haystack), (query.system, "")})
        },
    )


def read_indexes(path: Path) -> Iterator[IndexRecord]:
    """The indexes that a bench built; raises UsageError `journal_unreadable`."""
    prefixes = (b'{"stage":"filled"', b'{"stage": "filled"')
    for _, record in read_records(path, _reader(), prefixes=prefixes):
        if isinstance(record, IndexRecord):
            yield record


def load_resume_state(path: Path, settings: BenchSettings, systems: dict[str, str]) -> ResumeState:
    """Load the measurements of an earlier bench from its journal.

    Raises:
        UsageError: if the file is not the journal of a bench, or damaged (`journal_unreadable`), or
            of a bench with other settings (`resume_mismatch`).
    """
    header = read_header(path, BenchJournalHeader)
    require_same_settings(
        path,
        header.settings.model_dump(mode="json"),
        settings.model_dump(mode="json"),
        hint="the benchmark, its options, the selection of queries, --index and -k must be the"
        " same",
    )
    if header.systems and header.systems.keys().isdisjoint(systems):
        # A system may join those of an interrupted bench, but not take the place of all of them.
        before, now = ({"systems": ", ".join(each)} for each in (header.systems, systems))
        require_same_settings(path, before, now, "give a system that the bench has measured")
    records = (record for _, record in read_records(path, _reader()))
    state = _resumed(record for record in records if record.system in systems)
    # A system without measurements lacked a tool or crashed, and may have been mended since.
    measured = {name for name, *_ in (*state.indexes, *state.queries)}
    changed = [
        name
        for name in systems
        if name in measured and header.systems.get(name, systems[name]) != systems[name]
    ]
    if changed:
        raise UsageError(
            f"{', '.join(changed)}: not the same as in {path.parent}",
            code="resume_mismatch",
            hint="its build, adapter, packages, upstream or variables have changed, so that rows"
            " would mix two systems; start a new bench, without --resume",
        )
    return state
