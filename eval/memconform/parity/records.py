"""What a comparison says, as it is written; the schema is versioned."""

from enum import StrEnum
from typing import Literal

from pydantic import Field

from memconform.records import Record

PARITY_SCHEMA: Literal["memconform/parity-report@1"] = "memconform/parity-report@1"


class ParityVerdict(StrEnum):
    """Of two runs, the best first."""

    IDENTICAL = "identical"
    """The same on every question: a fact about these questions, and no more."""
    PARITY = "parity"
    """Their pass rates are within the margin of each other."""
    INCONCLUSIVE = "inconclusive"
    DRIFT = "drift"
    """Their pass rates differ, whatever the margin."""


class RateInterval(Record):
    value: float
    low: float
    high: float


class PairedComparison(Record):
    """Two pass rates of the same questions; differences are the first less the second."""

    verdict: ParityVerdict
    compared: int
    """Questions that both were measured on."""
    both: int
    first_only: int
    second_only: int
    neither: int
    difference: RateInterval
    """Of pass rates; Tango's score interval, 95 %."""
    equivalence: RateInterval
    """The same, of confidence 1 - 2 alpha: parity is where it lies within the margin."""
    mid_p: float
    """McNemar's, which decides."""
    exact_p: float
    holm_p: float
    """mid_p, for the number of pairs that are compared."""
    settled_by: int | None
    """How many questions would be conclusive at the rates seen; null where none would, or it is."""


class Parted(Record):
    """A question on which two runs part."""

    question: str
    stage: str
    detail: str
    flipped: bool
    """Whether one of them passes it, and the other does not."""


class Rankings(Record):
    """Means over the compared questions; chunks are joined by their text."""

    equal: int
    """Questions with the same chunks in the same order, scores within 1e-6."""
    largest_score_difference: float
    """Over rankings of the same chunks in the same order."""
    overlap: float
    jaccard: float
    rbo: float
    """Rank-biased overlap, p = 0.9."""
    kendall_tau_b: float | None
    """Over questions where it is defined."""
    first_hit_earlier: int
    """Questions whose first chunk with the answer stands earlier in the second, or only there."""
    first_hit_later: int


class Shapes(Record):
    """Whether requests for which the same chunks were found are answered in the same shape."""

    compared: int
    equal: int
    differences: list[str]
    """The first few; `+` is only in the second run, `-` only in the first."""


class Pair(Record):
    first: str
    second: str
    contrast: PairedComparison
    not_measured_first: int
    """Questions that the first was not measured on, alone or with the second."""
    not_measured_second: int
    score_difference: RateInterval
    """The mean, with the paired bootstrap's interval, 95 %; questions are drawn one by one."""
    answers_equal: int | None
    rankings: Rankings
    stages: dict[str, int]
    """Questions by the first stage at which they part."""
    flips: dict[str, int]
    """The same of those that one run alone passes."""
    flips_by_part: dict[str, int]
    parted: list[Parted]
    """The first few of every stage, flips first."""
    shapes: Shapes


class Compared(Record):
    """A run that was compared."""

    name: str
    sdk: str
    run_id: str
    version: str | None
    build_hash: str | None
    passed: int
    total: int


class ParityReport(Record):
    """What `parity --json` writes."""

    schema_version: Literal["memconform/parity-report@1"] = PARITY_SCHEMA
    verdict: ParityVerdict
    exit_code: int
    reasons: list[str]
    dataset: str
    scenario: str
    mode: str
    questions: int
    margin: float = Field(gt=0, lt=1)
    alpha: float = Field(gt=0, lt=0.5)
    seed: int
    resamples: int
    runs: list[Compared]
    pairs: list[Pair]
