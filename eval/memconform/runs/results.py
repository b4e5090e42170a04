"""What a run leaves on disk; the schema is versioned and read one major back."""

from statistics import fmean
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from memconform.datasets.model import Question
from memconform.ingest.records import SeedRecord
from memconform.records import Failure, Incident, Record
from memconform.scoring.statuses import PASS_THRESHOLD, QuestionStatus
from memconform.stats.quantiles import QuantileSummary
from memconform.storage.provenance import HostOrigin

RESULT_SCHEMA: Literal["memconform/result@1"] = "memconform/result@1"

_ROUNDING = 1e-9
"""How far a mean may be from the one that is computed again."""


class CallTimings(Record):
    """Milliseconds from the moment that the request's last byte left; null where it never came."""

    first_byte: float = Field(ge=0)
    first_event: float | None = Field(ge=0)
    first_delta: float | None = Field(ge=0)
    done: float = Field(ge=0)


class RankedChunk(Record):
    chunk_id: str
    document_id: str
    path: str
    score: float
    content: str | None = None
    """The first 16 hex digits of its text's SHA-256; by it rankings of two SDKs are joined."""


class CitedChunk(Record):
    chunk_id: str
    path: str
    score: float


class WireFingerprint(Record):
    """What went over the wires, for comparing it with another SDK's."""

    request: str
    """The SHA-256 of method, path behind the brain, and body that the harness sent."""
    shape: list[str] | None
    """Status, headers, events, keys and types of the answer; null where it was too long to keep."""
    prompts: list[dict[str, Any]] | None
    """What the daemon asked of a chat model; null where nobody saw it."""


def require_consistent(verdict: QuestionStatus, score: float | None) -> None:
    """Raise ValueError unless a verdict and a score can stand beside each other."""
    if verdict.measured != (score is not None):
        raise ValueError(f"{verdict.value} beside score {score}")
    if score is not None and (score >= PASS_THRESHOLD) != (verdict is QuestionStatus.CORRECT):
        raise ValueError(f"{verdict.value} beside score {score}")


class Attempt(Record):
    """One of several times that a question was put."""

    verdict: QuestionStatus
    score: float | None
    latency_ms: float | None

    @model_validator(mode="after")
    def _must_agree(self) -> Self:
        require_consistent(self.verdict, self.score)
        if self.score is not None and not 0 <= self.score <= 1:
            raise ValueError(f"score {self.score}")
        if self.latency_ms is not None and self.latency_ms < 0:
            raise ValueError(f"latency {self.latency_ms} ms")
        return self


class QuestionResult(Record):
    id: str
    question: str
    tags: list[str]
    verdict: QuestionStatus
    passed: bool
    score: float | None = Field(ge=0, le=1)
    """The mean over attempts; null where the question was not measured."""
    answer: str | None
    """What was scored: the reader's answer, or the retrieved text."""
    redacted: bool = False
    """Whether secrets are masked in `answer`; the score is of the text itself."""
    latency_ms: float | None
    timings: CallTimings | None
    citations: list[CitedChunk]
    ranking: list[RankedChunk]
    trace: dict[str, Any] | None
    error: Failure | None
    first_hit: int | None = None
    """The rank, from 1, of the first chunk whose text alone would pass."""
    seen: WireFingerprint | None = None
    attempts: list[Attempt] = Field(default_factory=list)
    """Each attempt where there were several; the fields above are then the first one's, but for
    verdict, passed and score, which speak of all."""

    @model_validator(mode="after")
    def _must_agree(self) -> Self:
        require_consistent(self.verdict, self.score)
        if self.passed != (self.verdict is QuestionStatus.CORRECT):
            raise ValueError(f"passed {self.passed} beside {self.verdict.value}")
        if self.first_hit is not None and not 1 <= self.first_hit <= len(self.ranking):
            raise ValueError(f"first_hit {self.first_hit} of {len(self.ranking)} chunks")
        if self.attempts:
            self._require_mean()
        return self

    def _require_mean(self) -> None:
        scores = [attempt.score for attempt in self.attempts if attempt.score is not None]
        mean = fmean(scores) if len(scores) == len(self.attempts) else None
        is_equal = mean == self.score
        if mean is not None and self.score is not None:
            is_equal = abs(mean - self.score) <= _ROUNDING
        if not is_equal:
            raise ValueError(f"score {self.score} of attempts with mean {mean}")

    @classmethod
    def unmeasured(
        cls,
        question: "Question | QuestionResult",
        verdict: QuestionStatus,
        error: Failure | None = None,
    ) -> "QuestionResult":
        """A question without a measurement."""
        return cls(
            id=question.id,
            question=question.question,
            tags=question.tags,
            verdict=verdict,
            passed=False,
            score=None,
            answer=None,
            latency_ms=None,
            timings=None,
            citations=[],
            ranking=[],
            trace=None,
            error=error,
        )

    def voided(self, incident: Incident) -> "QuestionResult":
        """The question of a run that an incident ended: no score of it is compared with another."""
        if not self.verdict.measured:
            return self
        error = Failure(code=incident.code, message=incident.message)
        return self.unmeasured(self, QuestionStatus.NOT_RUN, error)


class LatencySummary(Record):
    """Milliseconds over the measured questions."""

    done: QuantileSummary | None
    first_event: QuantileSummary | None
    first_delta: QuantileSummary | None


class FloorResult(Record):
    tag: str | None
    floor: float
    passed: int
    total: int
    rate: float
    best_rate: float
    """Had every unmeasured question passed."""
    held: bool


class DaemonRecord(Record):
    name: str | None
    version: str | None
    build_hash: str | None
    ready_ms: float | None
    rss_peak_bytes: int | None
    cpu_seconds: float | None


class VerificationRecord(Record):
    """How often the index was looked at while it was asked, and what came of it."""

    reproof: bool
    """False with --no-reproof: then only counts were compared, and nothing was asked again."""
    verifications: int
    """Times that the index was seen to be whole."""
    invalidations: int
    """Times that what was measured since the last of them was thrown away."""
    repeated: int
    """Retrievals that were made again before they counted: those without what was expected, those
    of questions whose answers did not pass, and a sample at the end."""
    retracted: int
    """Those of them that came out otherwise, and so are no measurement."""


class Provenance(HostOrigin):
    dataset_path: str
    dataset_sha256: str
    rescored_from: str | None
    """The run whose answers were scored anew."""
    resumed_from: str | None
    """The run whose measurements were taken over."""
    settings: dict[str, Any]
    settings_sha256: str


class RunSummary(Record):
    """A run without its questions."""

    schema_version: Literal["memconform/result@1"] = RESULT_SCHEMA
    run_id: str
    sdk: str
    scenario: str
    mode: str
    dataset: str
    scorer: str
    brain: str
    started_at: str
    finished_at: str
    total: int
    """Expected questions; those not applicable to the scenario are no part of it."""
    passed: int
    pass_rate: float | None
    """passed / total, the gate: a question that was not measured is not passed.

    Null, as the two rates below, where an incident ended the run."""
    pass_rate_interval: tuple[float, float]
    """Wilson, 95 %."""
    pass_rate_answered: float | None
    """passed / measured."""
    mean_score: float | None
    """Over the measured questions."""
    counts: dict[QuestionStatus, int]
    unstable: int
    """Questions whose attempts did not all end alike."""
    served_modes: dict[str, int]
    """How many questions were answered in which mode, whatever was asked for."""
    latency: LatencySummary
    floors: list[FloorResult]
    exit_code: int
    reasons: list[str]
    incident: Incident | None
    daemon: DaemonRecord
    seeded: SeedRecord | None
    verification: VerificationRecord | None = None
    """Null in results of versions that compared counts at the end."""
    provenance: Provenance


class RunResult(RunSummary):
    questions: list[QuestionResult]
