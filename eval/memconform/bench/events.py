"""What happens in a bench, for whoever listens."""

from dataclasses import dataclass
from pathlib import Path

from memconform.bench.records import BenchReport, Filled, QueryRecord
from memconform.errors import MemconformError
from memconform.ingest.records import IndexInvalidated, IndexVerified


@dataclass(frozen=True, slots=True)
class SystemStarted:
    system: str
    to_put: int
    """Queries times strategies, those that were kept from an earlier bench left out."""


@dataclass(frozen=True, slots=True)
class HaystackFilled:
    filled: Filled


@dataclass(frozen=True, slots=True)
class HaystackProved:
    proved: IndexVerified


@dataclass(frozen=True, slots=True)
class HaystackSpoilt:
    spoilt: IndexInvalidated


@dataclass(frozen=True, slots=True)
class QueryPut:
    record: QueryRecord


@dataclass(frozen=True, slots=True)
class SystemHalted:
    """Nothing more is put to this system."""

    system: str
    error: MemconformError


@dataclass(frozen=True, slots=True)
class BenchFinished:
    report: BenchReport
    result: Path


BenchEvent = (
    SystemStarted
    | HaystackFilled
    | HaystackProved
    | HaystackSpoilt
    | QueryPut
    | SystemHalted
    | BenchFinished
)
