"""The comparison of two results of the replay as written to JSON; its schema is versioned."""

from typing import Literal

from memconform.records import Incident, Record
from memconform.replay.records import JudgeVerdict
from memconform.scoring.accuracy import Accuracy
from memconform.stats.latency_ratio import LatencyRatio
from memconform.stats.paired_comparison import PairedComparison

REVIEW_SCHEMA: Literal["memconform/lme-review@1"] = "memconform/lme-review@1"


class Change(Record):
    """Something in which the results differ, besides their answers."""

    name: str
    """A setting such as `retrieval.top_k`; or the SDK, its version or build."""
    before: str
    after: str


class ReviewedResult(Record):
    """One of the two results."""

    path: str
    sdk: str
    version: str | None
    started_at: str
    questions: int
    measured: int
    accuracy: Accuracy
    """Accuracy over all of its questions, in percent."""
    overridden: int
    """Verdicts that a person overruled; none without `--overrides`."""
    incident: Incident | None


class Flip(Record):
    """A question that exactly one of the results answers right."""

    question: str
    category: str
    before: JudgeVerdict
    after: JudgeVerdict
    answer_before: str
    """The first 200 characters."""
    answer_after: str
    same_answer: bool
    """Whether the answers are equal, so that the verdict alone flipped."""
    gold_rank_before: int | None
    """The rank of the first session with an answer; null if none was retrieved."""
    gold_rank_after: int | None


class Unmeasured(Record):
    """A question of both results that at least one did not measure: no flip, and not wrong."""

    question: str
    before: str
    """Why it was not measured; empty if it was."""
    after: str


class LmeReview(Record):
    """What `diff --json` writes of two replays; differences are before minus after."""

    schema_version: Literal["memconform/lme-review@1"] = REVIEW_SCHEMA
    exit_code: int
    reasons: list[str]
    """What a reader of the verdict must know."""
    before: ReviewedResult
    after: ReviewedResult
    changes: list[Change]
    margin: float
    alpha: float
    overall: PairedComparison
    by_category: dict[str, PairedComparison]
    """With Holm's adjustment for the number of categories."""
    latency: LatencyRatio | None = None
    """Of retrieval; null if an agent searched, if the endpoints differ, if fewer than ten questions
    have one in both results, and in reports of earlier versions."""
    regressions: list[Flip]
    fixes: list[Flip]
    not_measured: list[Unmeasured]
    only_before: list[str]
    """Ids of questions that only this result has."""
    only_after: list[str]
