"""The reports of WMB-100K as written to disk; the schemas are versioned."""

from typing import Literal

from pydantic import Field

from memconform.bench.verdict_journal import VerdictJournalHeader
from memconform.datasets.wmb_names import Part
from memconform.records import Incident, Record
from memconform.scoring.judge.records import JudgeSettings, JudgeVote
from memconform.scoring.judge.summary import JudgingSummary
from memconform.scoring.statuses import QuestionStatus
from memconform.scoring.wmb import Profile, ProfileScore
from memconform.stats.quantiles import QuantileSummary
from memconform.storage.provenance import HostOrigin, ReportHeader

RUN_SCHEMA: Literal["memconform/wmb-run@1"] = "memconform/wmb-run@1"
SCORE_SCHEMA: Literal["memconform/wmb-score@1"] = "memconform/wmb-score@1"
JOURNAL_SCHEMA: Literal["memconform/wmb-journal@1"] = "memconform/wmb-journal@1"

WmbIndex = Literal["isolated", "category"]
"""One index for each part, or for each category of it."""


class LostQuestion(Record):
    """A question without a row, because its search failed or was not reached."""

    question: str
    code: str
    message: str


class WmbRun(HostOrigin, ReportHeader):
    """What `wmb run` writes beside the answers: which questions have no row, and why."""

    schema_version: Literal["memconform/wmb-run@1"] = RUN_SCHEMA
    run_id: str
    system: str
    strategy: str
    """The retrieval mode; empty for an adapter."""
    parts: Part
    index: WmbIndex = "isolated"
    """One index for all conversations, or one for each category, which finds more."""
    k: int
    """Memories requested for each question."""
    answers_sha256: str
    rows: int
    lost: list[LostQuestion]
    """Questions that were not measured; `score` makes bounds of them."""
    not_asked: list[str]
    """Questions of the benchmark that were not selected."""
    documents: int
    ingest_s: float | None
    """Null in a resumed run, as are the latencies."""
    latency_ms: QuantileSummary | None
    """From sending a request to the end of its answer."""
    incident: Incident | None


class WmbSettings(Record):
    """Settings that decide verdicts; `--resume` needs equal ones."""

    questions_sha256: str
    answers_sha256: str
    prompts: Literal["own", "official"]
    judge: JudgeSettings


class WmbJournalHeader(VerdictJournalHeader):
    """The first line of a journal of verdicts on memories."""

    schema_version: Literal["memconform/wmb-journal@1"] = JOURNAL_SCHEMA
    settings: WmbSettings


class WmbVerdict(Record):
    """The judges' verdict on the memories that one row has."""

    stage: Literal["verdict"] = "verdict"
    question: str
    memories: str
    """Digest of what the judges were shown."""
    status: QuestionStatus
    reason: str
    votes: list[JudgeVote]


class WmbOutcome(Record):
    """How a question came out by the README's rules."""

    stage: Literal["outcome"] = "outcome"
    question: str
    text: str
    category: str
    right: bool | None
    """Null if it was not measured."""
    code: str = ""
    """Why it was not measured; empty otherwise."""
    reason: str
    """The judges' reason, or the meaning of the code."""


class QuestionFile(Record):
    """The questions of the benchmark."""

    path: str
    sha256: str
    questions: int
    by_type: dict[str, int]
    """Counts both parts together."""


class AnswersFile(Record):
    """The stored answers, and what is unusual about them."""

    path: str
    sha256: str
    rows: int
    missing: list[str]
    """Questions without a row: wrong by the README, ignored by the script."""
    unknown: list[str]
    """Rows about no question of the benchmark; for the script they pay for their latency."""
    repeated: list[str]
    """Questions that occur again with the same memories; the script counts every row."""
    contradicted: list[str]
    """Questions that occur again with other memories; by the README the last row counts."""
    reordered: bool
    """Whether rows are in another order than the questions, which affects no score."""
    run: str | None
    """The run that made them, if its record lies beside them."""
    system: str | None
    index: WmbIndex | None = None
    """What this run indexed together; null if it is not known."""
    lost: list[LostQuestion]
    """Questions that this run lost, or may have lost; they are not measured."""
    not_asked: list[str]
    """Questions that this run left out."""
    empty: list[str] = Field(default_factory=list)
    """Categories without a single memory, as an index has them that lost them."""
    failed: list[LostQuestion] = Field(default_factory=list)
    """Questions with a row that holds an error message; the README's rules do not measure them."""


class WmbScore(HostOrigin, ReportHeader):
    """The document that `score --rubric wmb --json` writes."""

    schema_version: Literal["memconform/wmb-score@1"] = SCORE_SCHEMA
    run_id: str
    took_s: float
    label: str
    """Who judged and how many must agree, such as `quick: openai:gpt-4o-mini`."""
    settings: WmbSettings
    data: QuestionFile
    answers: AnswersFile
    resumed_from: str | None
    profiles: dict[Profile, ProfileScore] = Field(min_length=1)
    undisputed: dict[Profile, ProfileScore] = Field(default_factory=dict)
    """The same without the questions of the errata; empty without errata."""
    errata: str | None = None
    omitted: dict[str, int] = Field(default_factory=dict)
    """How many questions `undisputed` omits, by reason."""
    judging: JudgingSummary
    statuses: dict[QuestionStatus, int]
    """Counts the verdicts that the profiles need."""
    failures: list[str]
    """Why judges gave no verdict: each kind of failure with its count and first occurrence."""
    incident: Incident | None
