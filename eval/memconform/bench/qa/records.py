"""The report and the journal of scored answers as written to disk; the schemas are versioned."""

from typing import Literal

from pydantic import Field

from memconform.bench.verdict_journal import VerdictJournalHeader
from memconform.datasets.answer_keys import Suite
from memconform.records import Incident, Record
from memconform.scoring.accuracy import Estimate, QaScores
from memconform.scoring.judge.records import JudgeSettings, JudgeVote
from memconform.scoring.judge.summary import JudgingSummary
from memconform.scoring.statuses import QuestionStatus
from memconform.storage.provenance import HostOrigin, ReportHeader

QA_SCHEMA: Literal["memconform/qa-report@1"] = "memconform/qa-report@1"
JOURNAL_SCHEMA: Literal["memconform/qa-journal@1"] = "memconform/qa-journal@1"
METRICS_SCHEMA: Literal["memconform/qa-metrics@1"] = "memconform/qa-metrics@1"


class QaSettings(Record):
    """Settings that decide scores; `--resume` needs equal ones."""

    suite: Suite
    data_sha256: str
    hypotheses_sha256: str
    disputed_sha256: str | None
    """Digest of the ids in the errata file."""
    partial: bool
    """Whether only questions that have an answer are expected."""
    rubrics: dict[str, JudgeSettings]
    """By name; empty if no judge is asked."""
    prediction: str | None = None
    """The key of the answers in a file of LoCoMo's own code."""
    strip_reasoning: bool = False
    """Whether blocks of reasoning were removed from the answers."""


class Judgement(Record):
    """One answer, judged by one rubric."""

    stage: Literal["judgement"] = "judgement"
    rubric: str
    question: str
    text: str = ""
    """The question itself; empty in results of earlier versions, as `answer` is null."""
    answer: str | None = None
    category: str
    status: QuestionStatus
    score: float | None
    """In [0, 1]; None if it was not measured."""
    reason: str
    votes: list[JudgeVote]
    contains_yes: bool | None = None
    """The label by LongMemEval's released script, for replies of one word by a single judge."""


class QaJournalHeader(VerdictJournalHeader):
    """The first line of a journal of judgements."""

    schema_version: Literal["memconform/qa-journal@1"] = JOURNAL_SCHEMA
    settings: QaSettings


class OfficialFigures(Record):
    """What LongMemEval's print_qa_metrics.py prints of a log, as fractions rounded to 4 digits.

    It knows nothing of questions that are not in the log. Null is its `nan`: a type without rows.
    """

    by_task: dict[str, tuple[float | None, int]]
    """Accuracy and number of rows."""
    task_averaged: float | None
    overall: float | None
    abstention: tuple[float | None, int]
    model_accepted: bool
    """Whether the log names the one model that the script accepts."""


class SubstringLabels(Record):
    """How the labels of the released script differ from ours, for official prompts."""

    correct: int
    """Answers that we count as correct: the reply is `yes`."""
    contains_yes: int
    """Answers that the released script counts: the reply contains the letters `yes`."""
    differing: list[str]
    """Ids of the questions on which the two differ."""


class RubricReport(Record):
    """The scores of all answers by one rubric."""

    name: str
    prompts: Literal["own", "official"]
    statuses: dict[QuestionStatus, int]
    """Counts the answers; questions without an answer are not included."""
    failures: list[str]
    """Why judges gave no verdict: each kind of failure with its count and first occurrence."""
    views: dict[str, QaScores]
    judging: JudgingSummary
    official: OfficialFigures | None = None
    """Figures of LongMemEval's rubric; only on LongMemEval."""
    substring_labels: SubstringLabels | None = None
    """Only with official prompts."""


class Span(Record):
    """How far the accuracy of the same answers depends on the rubric alone."""

    answers: int
    """Answers that were measured by every rubric."""
    lowest: str
    highest: str
    points: float


class TextMetric(Record):
    """The mean of a metric over answers, in percent."""

    questions: int
    answered: int
    mean: Estimate | None
    """Null unless every question has an answer."""
    of_answered: float | None


class TextScores(Record):
    """Scores by words."""

    f1: TextMetric
    bleu1: TextMetric | None
    """Null without reference answers."""
    f1_by_category: dict[str, TextMetric]
    bleu1_by_category: dict[str, TextMetric]


class TextRecord(Record):
    """One answer, scored by its words; fractions."""

    stage: Literal["text"] = "text"
    question: str
    category: str
    f1: float
    bleu1: float | None


class RepeatedText(Record):
    """One text that answers more than half of the questions."""

    text: str
    """Its beginning; empty if the answers are."""
    answers: int


class AnswerFile(Record):
    """The stored answers."""

    path: str
    sha256: str
    answers: int
    missing: list[str]
    """Questions of the benchmark without an answer."""
    unknown: list[str]
    """Answers to questions that the benchmark does not have; they are not scored."""
    repeated: list[str]
    """Answers that occur again unchanged; they count once."""
    errors: dict[str, str] = Field(default_factory=dict)
    """Error messages instead of an answer, by question; they are not measured."""
    resembling_errors: list[str] = Field(default_factory=list)
    """Answers that begin as error messages may, and are scored."""
    empty: int = 0
    """Answers without text, which are wrong."""
    reasoning: int = 0
    """Answers with a block of reasoning, such as `<think>…</think>`."""
    same_text: RepeatedText | None = None


class KeyFile(Record):
    """The benchmark that the questions come from."""

    path: str
    sha256: str
    pinned: str | None
    """The public source with that digest."""
    questions: int
    abstention: int
    disputed: int


class QaReport(HostOrigin, ReportHeader):
    """The document that `score --json` writes of such answers."""

    schema_version: Literal["memconform/qa-report@1"] = QA_SCHEMA
    run_id: str
    took_s: float
    settings: QaSettings
    data: KeyFile
    hypotheses: AnswerFile
    resumed_from: str | None
    rubrics: list[RubricReport]
    text: dict[str, TextScores] = Field(default_factory=dict)
    """By view; LoCoMo only."""
    span: Span | None
    """Null for fewer than two rubrics."""
    incident: Incident | None


class QaMetrics(Record):
    """The document that `judge metrics --json` writes."""

    schema_version: Literal["memconform/qa-metrics@1"] = METRICS_SCHEMA
    log: str
    models: list[str]
    data: KeyFile
    missing: list[str]
    views: dict[str, QaScores]
    official: OfficialFigures
