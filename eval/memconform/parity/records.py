"""The parity report as written to JSON; its schema is versioned."""

from enum import StrEnum
from typing import Literal

from pydantic import Field

from memconform.records import Record

PARITY_SCHEMA: Literal["memconform/parity-report@1"] = "memconform/parity-report@1"


class ParityVerdict(StrEnum):
    """The verdict on two runs, from best to worst."""

    IDENTICAL = "identical"
    """The same on every question: a fact about these questions only."""
    PARITY = "parity"
    """Their pass rates are within the margin of each other."""
    INCONCLUSIVE = "inconclusive"
    DRIFT = "drift"
    """Their pass rates differ significantly, whatever the margin."""


class RateInterval(Record):
    """An estimate with its confidence interval."""

    value: float
    low: float
    high: float


class PairedComparison(Record):
    """Two pass rates of the same questions; differences are the first run minus the second."""

    verdict: ParityVerdict
    compared: int
    """Questions that both runs measured."""
    both: int
    first_only: int
    second_only: int
    neither: int
    difference: RateInterval
    """Difference of pass rates with its interval at 95 %: Tango's, or if questions share clusters,
    by cluster-t and no narrower than Tango's. Tango's alone with fewer than `fewest_clusters`,
    about these clusters only."""
    equivalence: RateInterval
    """The same difference at confidence 1 - 2 alpha; inside the margin it means parity."""
    mid_p: float
    """McNemar's mid-p, which decides unless questions share clusters."""
    exact_p: float
    """McNemar's exact p."""
    holm_p: float
    """The p that decides, after Holm's adjustment for the number of pairs compared."""
    settled_by: int | None
    """How many questions would be conclusive at the observed rates; null if the comparison already
    is, if no number up to 100,000 would be, or if questions share clusters."""
    clusters: int | None = None
    """The number of clusters, such as conversations, that the compared questions come in; null if
    no two share one, and in reports of earlier versions."""
    fewest_clusters: int | None = None
    """With fewer clusters no difference is significant, and the verdict is inconclusive unless the
    runs are identical; null without clusters."""
    sign_flip_p: float | None = None
    """The exact sign-flip p over clusters, which decides; null without clusters."""
    settled_by_clusters: int | None = None
    """About how many clusters like these would be conclusive; null if the comparison already is, if
    no number up to 100,000 questions would be, or with fewer than `fewest_clusters`."""
    dataset_questions: int | None = None
    """How many questions the dataset has, selected or not; null if not known."""
    dataset_clusters: int | None = None
    """How many clusters these come in; null if not known."""


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
