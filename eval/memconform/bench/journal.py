"""What a bench has measured so far, to go on from."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from memconform.bench.records import BenchSettings, Filled, JournalHeader, Measured, QueryRecord
from memconform.errors import UsageError
from memconform.ingest.records import IndexInvalidated, IndexVerified

_FOOTER = b'{"stage": "footer"'
_READER: TypeAdapter[Measured] = TypeAdapter(Annotated[Measured, Field(discriminator="stage")])


def in_index(record: Filled | QueryRecord, index: IndexVerified | IndexInvalidated) -> bool:
    """Whether something was measured in the index that was proved or spoilt."""
    return record.system == index.system and index.haystack in ("", record.haystack)


@dataclass(frozen=True, slots=True)
class ResumeState:
    """What an earlier bench has measured, in indexes that were proven afterwards."""

    filled: dict[tuple[str, str], Filled] = field(default_factory=dict)
    """By system and haystack."""
    queries: dict[tuple[str, str, str], QueryRecord] = field(default_factory=dict)
    """By system, strategy and query; those that were not measured are put again."""
    _open: list[Filled | QueryRecord] = field(default_factory=list, compare=False)
    """What no proof has followed yet."""

    def add(self, record: Measured) -> None:
        match record:
            case Filled() | QueryRecord(error=None):
                self._open.append(record)
            case IndexVerified():
                for each in self._open:
                    if in_index(each, record):
                        self._keep(each)
                self._open.clear()
            case IndexInvalidated():
                self._open.clear()
                self.filled.pop((record.system, record.haystack), None)
                for key, query in list(self.queries.items()):
                    if in_index(query, record):
                        del self.queries[key]

    def _keep(self, record: Filled | QueryRecord) -> None:
        match record:
            case Filled():
                self.filled[record.system, record.haystack] = record
            case QueryRecord():
                self.queries[record.system, record.strategy, record.query] = record

    def records(self) -> Iterator[Measured]:
        """To be written anew, index after index, each with its proof."""
        for (system, haystack), filled in self.filled.items():
            proof = IndexVerified(system=system, haystack=haystack)
            yield filled
            yield from (query for query in self.queries.values() if in_index(query, proof))
            yield proof


def load_resume_state(path: Path, settings: BenchSettings, systems: dict[str, str]) -> ResumeState:
    """The measurements of an earlier bench, by its journal.

    A last line without its end was being written when the bench was killed, and is dropped.

    Raises:
        UsageError: where it is not the journal of a bench, or of one that asked something else.
    """
    kept = ResumeState()
    try:
        with path.open("rb") as file:
            _require_same_settings(
                path, JournalHeader.model_validate_json(next(file)), settings, systems
            )
            for line in file:
                if not line.endswith(b"\n") or line.startswith(_FOOTER):
                    break
                record = _READER.validate_json(line)
                if record.system in systems:
                    kept.add(record)
    except (OSError, ValidationError, StopIteration) as error:
        raise UsageError(
            f"{path} is not the journal of a bench",
            code="journal_unreadable",
            hint="name a bench's folder below results/runs, or start anew without --resume",
        ) from error
    return kept


def _require_same_settings(
    path: Path, header: JournalHeader, settings: BenchSettings, systems: dict[str, str]
) -> None:
    known = header.settings.model_dump()
    other = [name for name, value in settings.model_dump().items() if known[name] != value]
    other += [name for name, what in systems.items() if header.systems.get(name, what) != what]
    if other:
        raise UsageError(
            f"{path.parent} was measured otherwise: {', '.join(other)}",
            code="resume_mismatch",
            hint="the benchmark, its options, the choice of queries, --index, -k, and each system's"
            " build, upstream and variables must be the same",
        )
