"""Events of a bench."""

from dataclasses import dataclass
from pathlib import Path

from memconform.bench.records import BenchReport, IndexRecord, QueryRecord
from memconform.contract.wire import Mode
from memconform.errors import MemconformError
from memconform.ingest.records import IndexInvalidated, IndexVerified


@dataclass(frozen=True, slots=True)
class SystemStarted:
    """A system is about to be started."""

    system: str
    pending: int
    """Queries times strategies, without those taken over from an earlier bench."""


@dataclass(frozen=True, slots=True)
class HaystackIndexed:
    """An index was built and verified."""

    record: IndexRecord


@dataclass(frozen=True, slots=True)
class HaystackVerified:
    """An index was verified after queries: their measurements count."""

    record: IndexVerified


@dataclass(frozen=True, slots=True)
class HaystackInvalidated:
    """An index turned out to have changed: measurements in it do not count."""

    record: IndexInvalidated


@dataclass(frozen=True, slots=True)
class QueryFinished:
    """A query was measured, or failed."""

    record: QueryRecord


@dataclass(frozen=True, slots=True)
class SystemHalted:
    """A system failed or was interrupted; it gets no further queries."""

    system: str
    error: MemconformError


@dataclass(frozen=True, slots=True)
class ModeHalted:
    """A mode of a system can no longer be measured; its other modes are."""

    system: str
    mode: Mode
    error: MemconformError


@dataclass(frozen=True, slots=True)
class BenchFinished:
    """The report is written; this is the last event."""

    report: BenchReport
    result: Path
    """The result file in the run's folder."""


BenchEvent = (
    SystemStarted
    | HaystackIndexed
    | HaystackVerified
    | HaystackInvalidated
    | QueryFinished
    | SystemHalted
    | ModeHalted
    | BenchFinished
)
