"""What happens in a run, for whoever listens."""

from dataclasses import dataclass
from pathlib import Path

from memconform.datasets.model import Question
from memconform.errors import MemconformError
from memconform.ingest.records import SeedRecord
from memconform.runs.highlights import Highlights
from memconform.runs.results import RunSummary


@dataclass(frozen=True, slots=True)
class RunStarted:
    run_id: str
    sdk: str
    scenario: str
    mode: str
    questions: int


@dataclass(frozen=True, slots=True)
class Noted:
    """Something takes long, or is worth a line."""

    message: str


@dataclass(frozen=True, slots=True)
class DaemonReady:
    base_url: str
    ready_ms: float | None


@dataclass(frozen=True, slots=True)
class BrainSeeded:
    seeded: SeedRecord


@dataclass(frozen=True, slots=True)
class QuestionFinished:
    """A question counts, or is known not to; what came of it is in the result."""

    question: Question


@dataclass(frozen=True, slots=True)
class RunHalted:
    """The rest of the run is not run."""

    error: MemconformError


@dataclass(frozen=True, slots=True)
class RunFinished:
    summary: RunSummary
    highlights: Highlights
    result: Path
    """The run's record, `…/runs/<run-id>/result.json`."""
    copy: Path
    """Its copy, `…/<date>/<sdk>.json`."""


Event = RunStarted | Noted | DaemonReady | BrainSeeded | QuestionFinished | RunHalted | RunFinished
