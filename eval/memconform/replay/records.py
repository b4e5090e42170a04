"""Results of the replay as written to disk; the schemas are versioned.

The names of an SDK's result are those that users of LongMemEval runs know.
"""

from typing import Literal

from pydantic import Field

from memconform.contract.wire import CONTRACT_VERSION, Mode, RankBy
from memconform.datasets.sharding import ShardRecord
from memconform.llm.records import ModelSettings
from memconform.measuring.observation import Observation
from memconform.records import Failure, Incident, Record, SkipRecord
from memconform.replay.hits import DocumentKind
from memconform.replay.shared_brain import BrainRecord, IngestMode
from memconform.scoring.accuracy import Accuracy, Estimate, QaScores
from memconform.scoring.costs import RoleCost
from memconform.scoring.judge.records import JudgeSettings, JudgeVote
from memconform.scoring.statuses import QuestionStatus
from memconform.stats.paired_comparison import PairedComparison, ParityVerdict
from memconform.stats.quantiles import QuantileSummary
from memconform.storage.journal import JournalHeader
from memconform.storage.provenance import HostOrigin, PartOrigin, ReportHeader

RESULT_SCHEMA: Literal["memconform/lme-result@1"] = "memconform/lme-result@1"
MANIFEST_SCHEMA: Literal["memconform/lme-manifest@1"] = "memconform/lme-manifest@1"
REPORT_SCHEMA: Literal["memconform/lme-report@1"] = "memconform/lme-report@1"
PARITY_SCHEMA: Literal["memconform/lme-parity@1"] = "memconform/lme-parity@1"
EXTRACT_SCHEMA: Literal["memconform/lme-extract@1"] = "memconform/lme-extract@1"
JOURNAL_SCHEMA: Literal["memconform/lme-journal@2"] = "memconform/lme-journal@2"

EndpointStyle = Literal["retrieve-only", "full"]
"""`/search`, and our reader answers; or `/ask`, and the daemon's own reader does."""
BenchmarkMode = Literal["oracle", "real-retrieval", "full-context"]
JudgeVerdict = Literal[
    "correct", "incorrect", "abstain_correct", "abstain_incorrect", "judge_error", "not_run"
]
"""`abstain_…` of questions that have no answer; `not_run` without an answer to judge."""


class ReplayRetrievalSettings(Record):
    """What decides what is retrieved, besides the brain and the daemon."""

    mode: Mode
    top_k: int
    candidate_k: int | None
    rerank_top_n: int | None
    scope: str | None
    project: str | None
    path_prefix: str | None
    session_filter: bool
    """Whether each question is asked of its own sessions alone."""
    rank_by: RankBy = "score"
    """What decides an SDK's rankings. The settings of the folder have the default."""


class ReplaySettings(Record):
    """What decides answers and scores; a replay is continued only with equal ones."""

    dataset_sha256: str
    questions: list[str]
    """Ids, in the order in which they are asked; in a shard its own."""
    shard: ShardRecord | None = None
    """Which part of the selected questions is asked; null for all."""
    benchmark_mode: BenchmarkMode
    endpoint_style: EndpointStyle
    ingest_mode: IngestMode
    agentic: bool = False
    """Whether the reader searches by itself, several times a question."""
    brain: str
    """Digest of what the brain's documents depend on."""
    retrieval: ReplayRetrievalSettings
    reader: ModelSettings | None
    """Null if the daemon's own reader answers; or nobody, so that what was retrieved is judged."""
    reader_prompt: str
    """The first 12 hex digits of the SHA-256 of the reader's prompts."""
    evidence_tokens: int
    """Tokens of the reader's context for evidence; without a reader, of the judge's."""
    judge: JudgeSettings | None
    """Null if answers are compared with the references exactly."""
    contract: str = CONTRACT_VERSION


class HitRecord(Record):
    """One returned chunk, for a diagnosis of retrieval."""

    rank: int
    path: str
    kind: DocumentKind
    session: str
    score: float
    text_sha256: str
    preview: str
    """Its first 200 characters."""


class ReplayRetrieval(Observation):
    """What one question retrieved; it counts once the index was verified again."""

    stage: Literal["retrieval"] = "retrieval"
    question: str
    hits: list[HitRecord]
    texts: list[str]
    """Texts of the hits, as the reader sees them."""
    answer: str | None = None
    """The answer of the daemon's own reader, or of the agent."""
    turns: int = 0
    """Turns of the agent; `served_model` and `reader_ms` also describe the agent."""
    served_model: str = ""
    reader_ms: float | None = None
    redacted: bool = False
    """Whether these texts contain secrets, which are masked here, so that nobody can read them."""
    error: Failure | None = None


class ReplayJournalHeader(JournalHeader):
    """The first line of an SDK's journal."""

    schema_version: Literal["memconform/lme-journal@2"] = JOURNAL_SCHEMA
    sdk: str
    identity: str
    """Digest of the daemon's build, variables and upstream."""
    settings: str
    """Digest of what decides retrieval."""
    version: str | None = None
    """That the daemon reports."""


class LmeQuestion(Record):
    """One question of an SDK's result."""

    id: str
    category: str
    question: str
    question_date: str | None
    reference_answers: list[str]
    abstention: bool
    answer: str | None
    exact_match: bool | None
    """Whether the answer contains a reference answer; a diagnosis, and no score with a judge."""
    judge_verdict: JudgeVerdict
    code: str = ""
    """Why the question was not measured; empty otherwise."""
    reason: str
    votes: list[JudgeVote] = Field(default_factory=list)
    served_model: str
    answer_session_ids: list[str]
    hits: list[HitRecord]
    first_gold_rank: int | None
    """The rank of the first session with an answer, among the distinct sessions of the hits."""
    gold_retrieved: bool | None
    """Whether all of them are among the hits; null for questions without an answer."""
    rises: bool = False
    """Whether a score rises in a ranking, which `--rank-by position` accepts."""
    skipped_stage: str | None = None
    """Which stage of its mode the search skipped, and why; null if it skipped none."""
    null_chunks: bool = False
    """Whether `chunks` was null in a response that found nothing."""
    is_short: bool = False
    """Whether a search had fewer hits than there are, which a dialect accepts."""
    shown: int
    """Hits that the reader was shown, whole or in part."""
    left_out: int
    """Hits without room in the reader's context, or of which only parts are shown."""
    retrieval_ms: float | None
    daemon_ms: float | None = None
    """The longest time of it that the daemon says it took; null if it does not say, and in older
    results."""
    reader_ms: float | None
    """Null of a cached reply; `judge_ms` likewise."""
    judge_ms: float | None
    cluster: str | None = None
    """What it shares with questions that are not independent of it, such as a history; null if it
    is independent of all others, and in results of earlier versions."""

    @property
    def status(self) -> QuestionStatus:
        """The verdict as all verbs have it."""
        return QuestionStatus(self.judge_verdict.removeprefix("abstain_"))

    @property
    def measured(self) -> bool:
        return self.status.measured

    @property
    def correct(self) -> bool:
        return self.status is QuestionStatus.CORRECT


class CostAccounting(Record):
    """What calls to language models took, by role: reader, judge; in extract.json extractor."""

    total_usd: float
    by_role: dict[str, RoleCost]


class Latencies(Record):
    """In ms; null without a call that was made."""

    retrieval: QuantileSummary | None
    reader: QuantileSummary | None
    judge: QuantileSummary | None


class CategoryScore(Record):
    """The accuracy of one question type, fractions."""

    questions: int
    measured: int
    correct: int
    score: float | None
    interval: tuple[float, float] | None


class LmeResult(HostOrigin, ReportHeader):
    """The result of one SDK, `result-<sdk>.json`. Scores are fractions, their intervals 95 %."""

    schema_version: Literal["memconform/lme-result@1"] = RESULT_SCHEMA
    sdk: str
    version: str | None
    build_hash: str | None
    took_s: float
    dataset_sha: str
    settings: ReplaySettings
    questions_run: int
    """Selected questions; `measured` of them have a verdict."""
    measured: int
    overall_score: float | None
    """Null unless every question was measured; `task_avg_score` and `abstention_score` likewise."""
    overall_interval: tuple[float, float] | None
    task_avg_score: float | None
    abstention_score: float | None
    by_category: dict[str, CategoryScore]
    exact_match: float | None
    """Share of the measured questions whose answer matches exactly; a diagnosis, no score."""
    scores: QaScores
    """The same scores in percent, with bounds where questions were not measured."""
    retrieval: dict[str, Estimate]
    """recall_any, recall_all and ndcg at k of the sessions with an answer, in percent; empty unless
    every question with such sessions was measured."""
    skipped_stages: dict[str, int] = Field(default_factory=dict)
    """Number of questions in mode hybrid-rerank that were not reranked, by the daemon's reason."""
    rising_scores: int = 0
    """Number of questions with a ranking in which a score rises, which `--rank-by position`
    accepts."""
    short_rankings: int = 0
    """Number of questions with fewer hits than there are, which a dialect accepts."""
    null_lists: int = 0
    """Number of questions with a response in which `chunks` is null, read as an empty ranking."""
    empty_rankings: int = 0
    """Number of questions for which nothing was retrieved."""
    correct_given_gold: Accuracy | None
    """Accuracy on the questions for which all sessions with an answer were retrieved."""
    cost_accounting: CostAccounting
    latency_p50_ms: float | None
    """Latency of the retrieval; null for an agent, because its searches run concurrently."""
    latency: Latencies
    short_latencies: int = 0
    """Number of questions whose retrieval took less than the daemon says it took: the clocks
    disagree, and the latencies mean nothing."""
    failures: list[str]
    """Why questions were not measured: each kind with its count and first occurrence."""
    incident: Incident | None
    """The error that ended the SDK's part."""
    mode_rule: str | None = None
    """Which mode was searched, and why; null for controls and in older results."""
    parts: list[PartOrigin] = Field(default_factory=list)
    """What a merged result was made of."""
    questions: list[LmeQuestion]


class SdkManifest(HostOrigin, ReportHeader):
    """What an SDK's result was made of, `manifest-<sdk>.json`."""

    schema_version: Literal["memconform/lme-manifest@1"] = MANIFEST_SCHEMA
    sdk: str
    version: str | None
    build_hash: str | None
    variables: dict[str, str]
    upstream: str
    documents: int | None
    chunks: int | None
    vectors: int | None
    ingest_ms: float | None
    ready_ms: float | None
    rss_peak_bytes: int | None
    cpu_seconds: float | None
    settings: ReplaySettings


class ExtractReport(HostOrigin, ReportHeader):
    """What the shared brain was made of, `extract.json`."""

    schema_version: Literal["memconform/lme-extract@1"] = EXTRACT_SCHEMA
    took_s: float
    brain: BrainRecord
    brain_sha256: str
    documents: int
    from_cache: bool
    """Whether the brain existed; nothing was extracted then."""
    cost_accounting: CostAccounting


class HitRankings(Record):
    """Similarity of what two SDKs retrieved, over the questions that both measured."""

    compared: int
    equal: int
    """Questions with the same chunks in the same order."""
    overlap: float | None
    """Mean overlap of the chunks; null without questions."""
    rbo: float | None
    """Mean rank-biased overlap, p = 0.9; null without questions."""


class QuestionDivergence(Record):
    """A question on which two SDKs differ."""

    question: str
    stage: Literal["measured", "candidates", "order", "scores", "answer", "verdict"]
    """The first stage at which they differ."""
    detail: str


class LmePair(Record):
    """The comparison of two SDKs."""

    first: str
    second: str
    answers: PairedComparison
    """A question passes if its answer is right."""
    gold: PairedComparison
    """A question passes if all sessions with an answer were retrieved."""
    rankings: HitRankings
    divergences: list[QuestionDivergence]


class LmeParity(HostOrigin, ReportHeader):
    """The comparison of all SDKs, `parity.json`."""

    schema_version: Literal["memconform/lme-parity@1"] = PARITY_SCHEMA
    verdict: ParityVerdict
    """The worst of all pairs, of answers and of retrieval."""
    session_filter: str
    """Which rule applied to the sessions that a question is asked of, and why."""
    reasons: list[str]
    """What was not measured."""
    pairs: list[LmePair]


class LmeReport(Record):
    """The report of `lme run --json` and `lme tri --json`: the results of one command."""

    schema_version: Literal["memconform/lme-report@1"] = REPORT_SCHEMA
    exit_code: int
    skipped: list[SkipRecord] = Field(default_factory=list)
    results: list[LmeResult]
    parity: LmeParity | None
    """Null for fewer than two SDKs."""


class PublishedReplay(Record):
    """A replay without its questions and their texts."""

    results: list[LmeResult]
    parity: LmeParity
