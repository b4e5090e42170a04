"""Events of a load measurement."""

from dataclasses import dataclass
from pathlib import Path

from memconform.errors import MemconformError
from memconform.load.plan import Step
from memconform.load.records import LoadReport, StepRecord


@dataclass(frozen=True, slots=True)
class SdkStarted:
    """An SDK's daemon is about to be started, and its brain filled."""

    sdk: str


@dataclass(frozen=True, slots=True)
class StepStarted:
    """The requests of a step are about to be sent."""

    sdk: str
    step: Step


@dataclass(frozen=True, slots=True)
class StepFinished:
    """A step was measured, or it is known why not."""

    sdk: str
    record: StepRecord


@dataclass(frozen=True, slots=True)
class SdkHalted:
    """An SDK failed or was interrupted; its later steps are missing."""

    sdk: str
    error: MemconformError


@dataclass(frozen=True, slots=True)
class LoadFinished:
    """The report is written; this is the last event."""

    report: LoadReport
    result: Path
    """The result file in the run's folder."""


LoadEvent = SdkStarted | StepStarted | StepFinished | SdkHalted | LoadFinished
