"""What a result says of its judges: verdicts, tokens, dollars, agreement, how far to trust them."""

from typing import Literal

from memconform.records import Record
from memconform.scoring.judge.records import ErrorRate


class CalibrationNote(Record):
    """What a judge's calibration found."""

    measured_at: str
    false_rejects: ErrorRate
    """How often the judge fails right answers."""
    false_accepts: dict[str, ErrorRate]
    """How often the judge passes wrong answers, by group."""
    weak: list[str]
    """As `Calibration.weak_groups`."""
    weakness: str
    """What is weak about it; empty if nothing is."""
    repeated: int
    contradicted: int


class JudgeUse(Record):
    """What one judge did in a run."""

    model: str
    served_models: list[str]
    """The models that the service says it used."""
    verdicts: int
    failed: int
    """Answers on which it gave no valid verdict."""
    cached: int
    """Answers for which no call was made."""
    contradicted: int
    """Answers on which it contradicted itself, with --judge-repeat."""
    input_tokens: int
    output_tokens: int
    cost_usd: float
    calibration: CalibrationNote | None
    """None of a judge that was never calibrated with this prompt."""


class PanelAgreement(Record):
    """How far several judges agree on the same answers."""

    answers: int
    equal_pairs: float | None
    """The share of pairs of verdicts that are equal."""
    fleiss_kappa: float | None
    fleiss_interval: tuple[float, float] | None
    krippendorff_alpha: float | None
    alpha_interval: tuple[float, float] | None


class CorrectedPassRate(Record):
    """The pass rate of the measured answers without the judge's errors (Rogan & Gladen 1978), if
    all of the wrong answers are of one group; answers that needed no judge count as they are."""

    wrong_answers: Literal["specific-wrong", "vague-wrong"]
    rate: float
    interval: tuple[float, float]
    """95 %; carries the calibration's own error (Lang & Reiczigel 2014)."""


class JudgingSummary(Record):
    """The judges' part of a result."""

    prompt: str
    """Digest of the prompt."""
    judged: int
    """Answers that were put to judges."""
    settled: int
    """Measured answers whose text alone settled the verdict."""
    cost_usd: float
    judges: list[JudgeUse]
    agreement: PanelAgreement | None
    """Agreement of several judges."""
    corrected: list[CorrectedPassRate]
    """Empty of a panel, of a judge without a calibration, and of one no better than chance."""
    notes: list[str]
    """What a reader of the figures must know."""
