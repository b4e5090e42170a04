"""The report on a judge and the person who checked it; its schema is versioned."""

from typing import Literal

from memconform.records import Record
from memconform.replay.overrides import PersonVerdict
from memconform.replay.records import JudgeVerdict
from memconform.scoring.accuracy import Accuracy, Estimate
from memconform.scoring.judge.records import ErrorRate

ARBITRATION_SCHEMA: Literal["memconform/lme-arbitration@1"] = "memconform/lme-arbitration@1"

Only = Literal["all", "disagreements", "incorrect"]


class Overruled(Record):
    """An answer on which the person differs from the judge."""

    question: str
    judge: JudgeVerdict
    person: PersonVerdict
    by: str
    note: str


class Kappa(Record):
    """Cohen's kappa with its 95 % bootstrap interval."""

    value: float
    interval: tuple[float, float] | None
    """Null where no resample had two verdicts."""


class LmeArbitration(Record):
    """The document that `lme arbitrate --json` writes; rates are fractions, scores percent."""

    schema_version: Literal["memconform/lme-arbitration@1"] = ARBITRATION_SCHEMA
    exit_code: int
    result: str
    sdk: str
    selection: str
    """Such as `incorrect` or `sample of 50, seed 42`."""
    selected: int
    """Answers that the selection shows."""
    arbitrated: int
    """How many of these answers a person judged."""
    by: list[str]
    compared: int
    """How many of the arbitrated answers the judge judged, too."""
    agreement: float | None
    representative: bool
    """Whether the compared answers speak for all: every one, or a random sample."""
    kappa: Kappa | None
    """Null unless representative, or if one of the two gave one verdict throughout."""
    false_rejects: ErrorRate | None
    """Share of answers passed by the person that the judge fails; null unless representative."""
    false_accepts: ErrorRate | None
    corrected: Estimate | None
    """The score without the judge's errors (Rogan & Gladen 1978), in percent; only of a random
    sample, in which the judge is clearly better than chance."""
    score: Accuracy
    """By the judge."""
    score_with_overrides: Accuracy
    """By the person where there is a verdict, otherwise by the judge."""
    overruled: list[Overruled]
    """Answers of the selection on which the person overruled the judge."""
    notes: list[str]
