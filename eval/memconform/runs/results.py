"""The schema of a run's result; it is versioned and read one major version back."""

from statistics import fmean
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from memconform.datasets.question import Question
from memconform.ingest.records import SeedRecord
from memconform.records import Failure, Incident, Record
from memconform.scoring.judge.records import JudgeVote
from memconform.scoring.judge.summary import JudgingSummary
from memconform.scoring.statuses import PASS_THRESHOLD, QuestionStatus
from memconform.stats.quantiles import QuantileSummary
from memconform.stats.stored_figures import is_same_figure
from memconform.storage.provenance import HostOrigin, PartOrigin

RESULT_SCHEMA: Literal["memconform/result@1"] = "memconform/result@1"


class CallTimings(Record):
    """Milliseconds since the request's last piece was sent; null if the event never came."""

    first_byte: float = Field(ge=0)
    first_event: float | None = Field(ge=0)
    first_delta: float | None = Field(ge=0)
    done: float = Field(ge=0)
    daemon: float | None = None
    """The longest time that the daemon says it took; null if it does not say, and in results of
    earlier versions."""


class RankedChunk(Record):
    """A retrieved chunk, at the rank given by its position."""

    chunk_id: str
    document_id: str | None
    """Null if the daemon's dialect has no such id."""
    path: str
    score: float
    content: str | None = None
    """The first 16 hex digits of its text's SHA-256, by which rankings of two SDKs are joined."""


class CitedChunk(Record):
    """A chunk that an answer cites."""

    chunk_id: str
    path: str
    score: float


class WireFingerprint(Record):
    """A digest of the exchange, for comparison with another SDK's."""

    request: str
    """The SHA-256 of the request's method, path after the brain id, and body."""
    shape: list[str] | None
    """Status, headers, events, keys and types of the answer; null if it was too long to keep."""
    prompts: list[dict[str, Any]] | None
    """The daemon's requests to a chat model; null if they were not observed."""


def require_consistent(verdict: QuestionStatus, score: float | None) -> None:
    """Raise ValueError if a verdict and a score contradict each other."""
    if verdict.measured != (score is not None):
        raise ValueError(f"{verdict.value} contradicts score {score}")
    if score is not None and (score >= PASS_THRESHOLD) != (verdict is QuestionStatus.CORRECT):
        raise ValueError(f"{verdict.value} contradicts score {score}")


class Attempt(Record):
    """One of several attempts at a question."""

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
    """The result of a question, aggregated over its attempts."""

    id: str
    question: str
    tags: list[str]
    question_date: str | None = None
    """The question's date in the dataset; null if it has none, and in results of earlier
    versions."""
    cluster: str | None = None
    """What it shares with questions that are not independent of it; null in results of earlier
    versions."""
    verdict: QuestionStatus
    passed: bool
    score: float | None = Field(ge=0, le=1)
    """The mean over attempts; null if the question was not measured."""
    answer: str | None
    """The scored text: the reader's answer or the retrieved text."""
    redacted: bool = False
    """Whether secrets are masked in `answer`; the unmasked text was scored."""
    latency_ms: float | None = Field(ge=0)
    timings: CallTimings | None
    citations: list[CitedChunk]
    ranking: list[RankedChunk]
    null_chunks: bool = False
    """Whether the daemon sent null for the empty ranking, which violates core.search.shape."""
    trace: dict[str, Any] | None
    error: Failure | None
    reason: str = ""
    """Why it has this verdict, if the scorer says so."""
    judges: list[JudgeVote] = Field(default_factory=list)
    """The votes of its judges, attempt by attempt; empty if no judge was asked."""
    first_hit: int | None = None
    """The rank, from 1, of the first chunk whose text alone would pass."""
    seen: WireFingerprint | None = None
    attempts: list[Attempt] = Field(default_factory=list)
    """All attempts, if there were several. Verdict, passed and score above cover all of them; the
    other fields are those of the first."""

    @model_validator(mode="after")
    def _must_agree(self) -> Self:
        require_consistent(self.verdict, self.score)
        if self.passed != (self.verdict is QuestionStatus.CORRECT):
            raise ValueError(f"passed {self.passed} contradicts {self.verdict.value}")
        if self.first_hit is not None and not 1 <= self.first_hit <= len(self.ranking):
            raise ValueError(f"first_hit {self.first_hit} of {len(self.ranking)} chunks")
        if self.attempts:
            self._require_mean()
        return self

    def _require_mean(self) -> None:
        scores = [attempt.score for attempt in self.attempts if attempt.score is not None]
        mean = fmean(scores) if len(scores) == len(self.attempts) else None
        if not is_same_figure(self.score, mean):
            raise ValueError(f"score {self.score} differs from the attempts' mean {mean}")

    @classmethod
    def unmeasured(
        cls,
        question: "Question | QuestionResult",
        verdict: QuestionStatus,
        error: Failure | None = None,
    ) -> "QuestionResult":
        """Create the result of a question without a measurement."""
        return cls(
            id=question.id,
            question=question.question,
            tags=question.tags,
            question_date=question.question_date,
            cluster=question.cluster,
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

    @property
    def has_retrieval(self) -> bool:
        """Whether what was retrieved is recorded: of stored answers it is not."""
        recorded = (self.latency_ms, self.trace, self.seen)
        return bool(self.ranking) or any(value is not None for value in recorded)

    def voided(self, incident: Incident) -> "QuestionResult":
        """The result without its measurement, for a run that an incident ended."""
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
    """Whether a floor was held, and by how much."""

    tag: str | None
    floor: float
    passed: int
    total: int
    rate: float
    best_rate: float
    """The rate if every unmeasured question had passed."""
    held: bool


class DaemonRecord(Record):
    """The tested daemon and its resource use; null if unknown."""

    name: str | None
    version: str | None
    build_hash: str | None
    # Null in a run that took attempts over from an earlier one: other daemons did that work.
    ready_ms: float | None
    rss_peak_bytes: int | None
    cpu_seconds: float | None


class VerificationRecord(Record):
    """How often the index was verified during the run, and the outcome."""

    reproof: bool
    """False with --no-reverify: only counts were compared, and no retrieval was repeated."""
    verifications: int
    """Number of times the index was found complete."""
    invalidations: int
    """Number of times attempts were discarded because the index was in doubt."""
    repeated: int
    """Retrievals repeated before they counted: those without the expected text, those of questions
    whose answers did not pass, and a sample at the end."""
    retracted: int
    """Repeated retrievals that differed, so that their attempts do not count."""


class UpstreamRecord(Record):
    """Whether the scripted upstream wrote the answers of a run."""

    answered: int
    """Answers that this run received and that followed a retrieval with results."""
    asked: int
    """Chats in which the daemon asked the upstream for an answer, including those of the warm-up
    and those that were refused."""
    refused: int
    """Prompts that the upstream's reader could not read."""
    refusal: str
    """The last refusal's message."""
    elsewhere: list[str]
    """Addresses other than the upstream's to which the daemon had connections when sampled."""

    @property
    def ignored(self) -> bool:
        """Whether no answer can be the upstream's."""
        return self.answered > 0 and self.asked == 0


class Provenance(HostOrigin):
    """Where a result comes from."""

    sdk_reference: str | None = None
    """The value of `--sdk` for this SDK; null in results of earlier versions."""
    dataset_path: str
    dataset_sha256: str
    rescored_from: str | None
    """The run whose answers were rescored."""
    resumed_from: str | None
    """The run whose measurements were reused."""
    parts: list[PartOrigin] = Field(default_factory=list)
    """What a merged result was made of."""
    settings: dict[str, Any]
    settings_sha256: str


class RunSummary(Record):
    """The result of a run without its questions."""

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
    """Number of questions, without those not applicable to the scenario."""
    passed: int
    pass_rate: float | None
    """passed / total, which floors apply to; an unmeasured question is not passed.

    Null, like the two rates below, if an incident ended the run or nothing was measured."""
    pass_rate_interval: tuple[float, float]
    """Wilson interval, 95 %, for the effective sample size where questions share clusters; [0, 1],
    which says nothing, where `pass_rate` is null."""
    pass_rate_answered: float | None
    """passed / measured."""
    mean_score: float | None
    """Over the measured questions."""
    counts: dict[QuestionStatus, int]
    unstable: int
    """Number of questions whose attempts ended in different verdicts."""
    served_modes: dict[str, int]
    """Number of questions by the mode that was served, whatever mode was requested; `unconfirmed`
    where no trace confirms one."""
    skipped_stages: dict[str, int] = Field(default_factory=dict)
    """Measured questions in mode hybrid-rerank that were not reranked, by the daemon's reason."""
    rising_scores: int = 0
    """Number of rankings in which a score rises, which `--rank-by position` accepts."""
    null_lists: int = 0
    """Number of empty rankings for which the daemon sent null, which violates core.search.shape."""
    empty_rankings: int = 0
    """Number of measured questions for which nothing was retrieved."""
    latency: LatencySummary
    short_latencies: int = 0
    """Number of questions whose latency is below the time that the daemon says it took: the clocks
    disagree, and the latencies mean nothing."""
    floors: list[FloorResult]
    exit_code: int
    reasons: list[str]
    incident: Incident | None
    daemon: DaemonRecord
    seeded: SeedRecord | None
    verification: VerificationRecord | None = None
    """Null in results of earlier versions, which only compared counts at the end."""
    upstream: UpstreamRecord | None = None
    """Null without the scripted upstream, and in results of earlier versions."""
    judging: JudgingSummary | None = None
    """What the judges did; null with another scorer."""
    provenance: Provenance


class RunResult(RunSummary):
    """The complete result of a run."""

    questions: list[QuestionResult]
