"""The events of a run, for reports to consume."""

from dataclasses import dataclass
from pathlib import Path

from memconform.datasets.question import Question
from memconform.errors import MemconformError
from memconform.ingest.records import SeedRecord
from memconform.runs.highlights import Highlights
from memconform.runs.results import RunSummary


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The run's folder exists and `questions` questions are selected."""

    run_id: str
    sdk: str
    scenario: str
    mode: str
    questions: int


@dataclass(frozen=True, slots=True)
class Notice:
    """A message to show, such as the progress of a build."""

    message: str


@dataclass(frozen=True, slots=True)
class DaemonReady:
    """The daemon answers; `ready_ms` is None if it was already running."""

    base_url: str
    ready_ms: float | None


@dataclass(frozen=True, slots=True)
class BrainSeeded:
    """The brain is filled and its index proven."""

    seeded: SeedRecord


@dataclass(frozen=True, slots=True)
class AskingStarted:
    """The first of `questions` questions is about to be asked; a resumed run has asked others."""

    questions: int


@dataclass(frozen=True, slots=True)
class QuestionFinished:
    """All attempts at a question are settled; their outcome is in the result."""

    question: Question


@dataclass(frozen=True, slots=True)
class RunHalted:
    """The remaining questions will not be run, because of `error`."""

    error: MemconformError


@dataclass(frozen=True, slots=True)
class RunFinished:
    """The result is written."""

    summary: RunSummary
    highlights: Highlights
    result: Path
    """`…/runs/<run-id>/result.json`."""
    copy: Path
    """Its copy, `…/<date>/<sdk>.json`."""


Event = (
    RunStarted
    | Notice
    | DaemonReady
    | BrainSeeded
    | AskingStarted
    | QuestionFinished
    | RunHalted
    | RunFinished
)
