"""What a run leaves on disk; the schema is versioned and read one major back."""

from collections.abc import Iterable
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from memconform.errors import MemconformError
from memconform.scoring.verdicts import Verdict
from memconform.stats.quantiles import quantiles

RESULT_SCHEMA: Literal["memconform/result@1"] = "memconform/result@1"


class Record(BaseModel):
    """Unknown keys are kept out: a result says just what its schema says."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class CallTimings(Record):
    """Milliseconds from sending the request; null where it never came."""

    first_byte: float = Field(ge=0)
    first_event: float | None = Field(ge=0)
    first_delta: float | None = Field(ge=0)
    done: float = Field(ge=0)


class Failure(Record):
    """Why a question was not measured."""

    code: str
    message: str
    body: str = ""
    """What the daemon did send, cut."""
    curl: str = ""
    """A command that repeats the request."""
    wire: str | None = None
    """The transcript of the exchange, a file in the run's folder."""


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


class Seen(Record):
    """What went over the wires, for comparing it with another SDK's; of the first attempt."""

    request: str
    """The SHA-256 of method, path behind the brain, and body that the harness sent."""
    shape: list[str] | None
    """Status, headers, events, keys and types of the answer; null where it was too long to keep."""
    prompts: list[dict[str, Any]] | None
    """What the daemon asked of a chat model; null where nobody saw it."""


class Attempt(Record):
    """One of several times that a question was put."""

    verdict: Verdict
    score: float | None
    latency_ms: float | None


class QuestionResult(Record):
    id: str
    question: str
    tags: list[str]
    verdict: Verdict
    passed: bool
    score: float | None = Field(ge=0, le=1)
    """The mean over attempts; null where the question was not measured."""
    answer: str | None
    """What was scored: the reader's answer, or the retrieved text."""
    latency_ms: float | None
    timings: CallTimings | None
    citations: list[CitedChunk]
    ranking: list[RankedChunk]
    trace: dict[str, Any] | None
    error: Failure | None
    first_hit: int | None = None
    """The rank, from 1, of the first chunk whose text alone would pass."""
    seen: Seen | None = None
    attempts: list[Attempt] = Field(default_factory=list)
    """Each attempt where there were several; the fields above are then the first one's, but for
    verdict, passed and score, which speak of all."""


class QuantileSummary(Record):
    p50: float
    p95: float
    p99: float

    @classmethod
    def of(cls, values: Iterable[float]) -> "QuantileSummary | None":
        """None without values."""
        found = quantiles(values)
        return cls(**found._asdict()) if found else None


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


class Incident(Record):
    """What ended or spoilt a run as a whole."""

    code: str
    message: str
    hint: str
    excerpt: str
    exit_code: int

    @classmethod
    def of(cls, error: MemconformError) -> "Incident":
        return cls(
            code=error.code,
            message=error.message,
            hint=error.hint,
            excerpt=error.excerpt,
            exit_code=error.exit_code,
        )


class DaemonRecord(Record):
    name: str | None
    version: str | None
    build_hash: str | None
    ready_ms: float | None
    rss_peak_bytes: int | None
    cpu_seconds: float | None


class SeedRecord(Record):
    documents: int
    chunks: int
    vectors: int
    took_ms: float
    """From the first document that was sent until none was pending."""


class Provenance(Record):
    dataset_path: str
    dataset_sha256: str
    git_revision: str | None
    harness_version: str
    python_version: str
    host: str
    command: list[str]
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
    """passed / total, the gate: a question that was not measured is not passed."""
    pass_rate_interval: tuple[float, float]
    """Wilson, 95 %."""
    pass_rate_answered: float | None
    """passed / measured."""
    mean_score: float | None
    """Over the measured questions."""
    counts: dict[Verdict, int]
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
    provenance: Provenance


class RunResult(RunSummary):
    questions: list[QuestionResult]
