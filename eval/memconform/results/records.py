"""The parity report as written to JSON; its schema is versioned."""

from typing import Literal

from pydantic import Field

from memconform.records import Record
from memconform.stats.paired_comparison import PairedComparison, ParityVerdict, RateInterval

PARITY_SCHEMA: Literal["memconform/parity-report@1"] = "memconform/parity-report@1"


class DivergentQuestion(Record):
    """A question on which two runs diverge."""

    question: str
    stage: str
    detail: str
    flipped: bool
    """Whether exactly one of the runs passes it."""


class Rankings(Record):
    """Similarity of rankings: means over the compared questions; chunks match by their text."""

    compared: int | None = None
    """Questions whose rankings both results recorded; null in reports of earlier versions, where
    it is all."""
    equal: int
    """Questions with the same chunks in the same order and scores within 1e-6."""
    largest_score_difference: float
    """Over rankings of the same chunks in the same order."""
    overlap: float
    jaccard: float
    rbo: float
    """Rank-biased overlap, p = 0.9."""
    kendall_tau_b: float | None
    """Mean over the questions for which it is defined; null if there are none."""
    first_hit_earlier: int
    """Questions whose first answer chunk ranks earlier in the second run, or is only there."""
    first_hit_later: int
    """Questions whose first answer chunk ranks later in the second run, or is missing there."""


class Shapes(Record):
    """Whether responses with the same chunks have the same JSON shape."""

    compared: int
    equal: int
    differences: list[str]
    """The first few; `+` is only in the second run, `-` only in the first."""


class Pair(Record):
    """The comparison of two runs."""

    first: str
    second: str
    contrast: PairedComparison
    not_measured_first: int
    """Questions that the first run did not measure, whether or not the second did."""
    not_measured_second: int
    score_difference: RateInterval
    """Mean score difference with its interval at 95 %: of a paired bootstrap that draws questions
    one by one, or by cluster-t if there are `contrast.fewest_clusters`."""
    answers_equal: int | None
    """Questions with equal answers; null for searches, which return none."""
    rankings: Rankings
    stages: dict[str, int]
    """Divergent questions by the first stage at which they diverge."""
    flips: dict[str, int]
    """The same for questions that only one run passes."""
    flips_by_part: dict[str, int]
    """Flips by the part of the system that is responsible for the stage."""
    parted: list[DivergentQuestion]
    """The first few divergent questions of every stage, flips first."""
    shapes: Shapes


class ComparedRun(Record):
    """The identity and pass count of a run in the comparison."""

    name: str
    sdk: str
    run_id: str
    path: str | None = None
    """Its result file, from the folder in which the runs were compared; null in older reports."""
    version: str | None
    build_hash: str | None
    passed: int
    total: int


class ParityReport(Record):
    """The document that `parity --json` writes."""

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
    runs: list[ComparedRun]
    pairs: list[Pair]
