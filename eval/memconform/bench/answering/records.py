"""The report of answers as written to disk; the schema is versioned."""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from memconform.bench.qa.records import KeyFile, TextMetric
from memconform.datasets.answer_keys import Suite
from memconform.datasets.question import Question
from memconform.llm.records import ModelSettings
from memconform.records import Failure, Incident, Record
from memconform.scoring.accuracy import Accuracy, Estimate, QaScores
from memconform.scoring.costs import RoleCost
from memconform.scoring.judge.records import JudgeSettings, JudgeVote
from memconform.scoring.reader.names import HistoryFormat, Method, Speakers, Unit
from memconform.scoring.statuses import QuestionStatus
from memconform.storage.provenance import HostOrigin, ReportHeader

ANSWER_SCHEMA: Literal["memconform/answer-report@1"] = "memconform/answer-report@1"


class ReaderSettings(Record):
    """What decides the answers, besides what was retrieved."""

    model: ModelSettings
    prompts: Literal["own", "official"]
    prompt: str
    """The first 12 hex digits of the SHA-256 of the reader's prompts."""
    method: Method
    history: HistoryFormat
    speakers: Speakers
    unit: Unit
    top_k: int
    context_tokens: int
    budget_tokens: int | None
    """Budget of the passages; null if nothing is cut (official prompts)."""
    seed: int
    """Seed of the arm random-k."""


class AnswerSettings(Record):
    """What decides the scores."""

    suite: Suite
    data_sha256: str
    asked_sha256: str
    """Digest of the questions, and of what they were asked of."""
    disputed_sha256: str | None
    """Digest of the ids in the errata."""
    level: str
    """Whether sessions or turns were retrieved."""
    reader: ReaderSettings
    rubric: str
    judge: JudgeSettings
    strip_reasoning: bool = False
    """Whether answers of the daemons' own readers are scored without their blocks of reasoning."""


class ArmAnswer(Record):
    """The answer of one arm to one question."""

    stage: Literal["answer"] = "answer"
    arm: str
    question: str
    text: str = ""
    """The question itself; empty in results of earlier versions."""
    category: str
    status: QuestionStatus
    """`not_run` if there is no answer to judge."""
    code: str = ""
    """Why there is no answer, or no judge was asked; empty otherwise."""
    reason: str
    """The judge's reason, or the meaning of the code."""
    answer: str | None
    served_model: str
    """The model that the service says it used; empty without a call."""
    shown: list[str]
    """Ids of the passages that the reader was shown, in order of date."""
    left_out: int
    """Passages without room in the context, or of which only the beginning is shown."""
    gold_shown: bool | None
    """Whether all gold was shown; null for questions to abstain from, and without gold."""
    f1: float | None = None
    """LoCoMo's official F1, a fraction."""
    votes: list[JudgeVote] = Field(default_factory=list)
    """Without a status those that were paid for before an error ended the panel."""

    @classmethod
    def unanswered(
        cls,
        arm: str,
        question: Question,
        failure: Failure,
        *,
        shown: Sequence[str] = (),
        left_out: int = 0,
        gold_shown: bool | None = None,
    ) -> "ArmAnswer":
        """Record that there is no answer, and why."""
        return ArmAnswer(
            arm=arm,
            question=question.id,
            text=question.question,
            category=question.category,
            status=QuestionStatus.NOT_RUN,
            code=failure.code,
            reason=failure.message,
            answer=None,
            served_model="",
            shown=list(shown),
            left_out=left_out,
            gold_shown=gold_shown,
        )


Role = Literal["reader", "notes", "judge"]


class RoleUse(RoleCost):
    """The calls of one role in one arm."""

    role: Role


class KeptGain(Record):
    """How much of what perfect retrieval adds over no memory an arm keeps, in percent.

    The ratio of two differences of accuracy on the same questions, with Fieller's 95 % interval.
    """

    share: Estimate | None
    why: str
    """Why there is no share; empty if there is."""


class ArmReport(Record):
    """One way to choose what the reader sees."""

    name: str
    kind: Literal["retrieval", "daemon", "control"]
    """What a system retrieved, read by the reader; the daemon's own answers; or no system."""
    measured: bool
    """Whether every question was answered and judged."""
    views: dict[str, QaScores]
    with_gold: Accuracy | None
    """Accuracy on questions for which all gold was shown; null without evidence or if unknown."""
    without_gold: Accuracy | None
    """Accuracy on questions for which some gold was not shown."""
    kept: KeptGain | None
    """Null of the two arms that it is measured by."""
    f1: TextMetric | None
    """LoCoMo's official F1."""
    use: list[RoleUse]
    statuses: dict[QuestionStatus, int]
    failures: list[str]
    """Why questions were not measured: each kind with its count and first occurrence."""
    cut: int
    """Questions with a passage that had no room in the context."""
    incident: Incident | None
    """The error that ended the arm."""
    other_retrieval: int | None = None
    """Answers of the daemon's own reader from other items than its search found; null for the other
    arms and in older results."""


class AnswerReport(HostOrigin, ReportHeader):
    """The document that `answer --json` writes."""

    schema_version: Literal["memconform/answer-report@1"] = ANSWER_SCHEMA
    run_id: str
    took_s: float
    settings: AnswerSettings
    data: KeyFile
    questions: int
    served_models: list[str]
    """The models that the reader's service says it used."""
    benches: list[str]
    """Run ids of the benches whose rankings were read."""
    arms: list[ArmReport]
    incident: Incident | None
    """The interruption that ended the command."""
