"""Events of a replay, in the order in which they happen."""

from dataclasses import dataclass
from pathlib import Path

from memconform.errors import MemconformError
from memconform.ingest.records import SeedRecord
from memconform.replay.records import LmeParity, LmeQuestion, LmeResult


@dataclass(frozen=True, slots=True)
class PartStarted:
    """An SDK, or a control, is next."""

    name: str
    resumed: int
    """Questions whose retrieval an earlier start has recorded."""


@dataclass(frozen=True, slots=True)
class BrainIndexed:
    """The daemon holds the whole brain."""

    name: str
    record: SeedRecord


@dataclass(frozen=True, slots=True)
class QuestionRetrieved:
    """A question was asked of a daemon, successfully or not."""

    name: str
    question: str


@dataclass(frozen=True, slots=True)
class QuestionAnswered:
    """A question was read and judged, successfully or not."""

    name: str
    question: LmeQuestion


@dataclass(frozen=True, slots=True)
class PartHalted:
    """An error ended a part."""

    name: str
    error: MemconformError


@dataclass(frozen=True, slots=True)
class PartFinished:
    """A part's result is written."""

    result: LmeResult
    path: Path


@dataclass(frozen=True, slots=True)
class ReplayFinished:
    """The last event."""

    results: tuple[LmeResult, ...]
    parity: LmeParity | None
    """None for fewer than two SDKs."""
    folder: Path
    exit_code: int


ReplayEvent = (
    PartStarted
    | BrainIndexed
    | QuestionRetrieved
    | QuestionAnswered
    | PartHalted
    | PartFinished
    | ReplayFinished
)
