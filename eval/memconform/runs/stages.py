"""The stages of an attempt, as the journal holds them: retrieval, answer, judgement."""

from dataclasses import dataclass
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from memconform.records import Failure, Record
from memconform.runs.results import (
    CallTimings,
    CitedChunk,
    RankedChunk,
    WireFingerprint,
    require_consistent,
)
from memconform.scoring.scorer import Score
from memconform.scoring.statuses import QuestionStatus


class RetrievalRecord(Record):
    stage: Literal["retrieval"] = "retrieval"
    row: int
    attempt: int
    id: str = ""
    """The question's; empty in journals of versions 1 and 2."""
    mode: str
    ranking: list[RankedChunk]
    trace: dict[str, Any]
    timings: CallTimings
    first_hit: int | None = None
    seen: WireFingerprint | None = None


class AnswerRecord(Record):
    """The text that is scored, whether a reader wrote it or a search returned it."""

    stage: Literal["answer"] = "answer"
    row: int
    attempt: int
    text: str
    citations: list[CitedChunk]
    redacted: bool = False
    """Whether secrets are masked in the text that is stored; what was scored is the text itself."""


class JudgementRecord(Record):
    """What an attempt is worth; one without a score was not measured, and says why."""

    stage: Literal["judgement"] = "judgement"
    row: int
    attempt: int
    id: str
    """The question's, so that another version of the dataset is not taken for this one."""
    verdict: QuestionStatus
    score: float | None = Field(ge=0, le=1)
    error: Failure | None
    reason: str = ""
    """Why, where the scorer says so."""
    detail: dict[str, Any] = Field(default_factory=dict)
    """What else it says."""

    @classmethod
    def of(cls, score: Score, *, row: int, attempt: int, id: str) -> "JudgementRecord":  # noqa: A002 - the field's name
        """What a scorer says of an attempt; one that failed is no measurement, and says why."""
        status = score.status
        failed = None if status.measured else Failure(code=status.value, message=score.reason)
        return cls(
            row=row,
            attempt=attempt,
            id=id,
            verdict=status,
            score=score.value,
            error=failed,
            reason=score.reason,
            detail=dict(score.detail),
        )

    @model_validator(mode="after")
    def _must_agree(self) -> Self:
        require_consistent(self.verdict, self.score)
        return self


StageRecord = RetrievalRecord | AnswerRecord | JudgementRecord


@dataclass(slots=True)
class AttemptRecords:
    """What is known of one attempt at a question, stage by stage."""

    row: int
    attempt: int
    number: int = 0
    """Of the attempt in its journal, from 0, in the order in which the daemon's answers ended."""
    retrieval: RetrievalRecord | None = None
    answer: AnswerRecord | None = None
    judgement: JudgementRecord | None = None

    def add(self, record: StageRecord) -> None:
        match record:
            case RetrievalRecord():
                self.retrieval = record
            case AnswerRecord():
                self.answer = record
            case JudgementRecord():
                self.judgement = record

    def records(self) -> list[StageRecord]:
        """The stages that are there, in their order."""
        stages = (self.retrieval, self.answer, self.judgement)
        return [record for record in stages if record is not None]

    @property
    def question_id(self) -> str:
        """Empty where nothing says it."""
        if self.judgement is not None:
            return self.judgement.id
        return self.retrieval.id if self.retrieval is not None else ""

    @property
    def measured(self) -> bool:
        """Whether it has a score that counts."""
        return self.judgement is not None and self.judgement.verdict.measured

    @property
    def lacks_judgement(self) -> bool:
        """Whether the daemon has done its part, and only the scorer has not."""
        verdict = self.judgement.verdict if self.judgement is not None else None
        return self.answer is not None and verdict in (None, QuestionStatus.JUDGE_ERROR)

    @property
    def latency_ms(self) -> float | None:
        """From the request's last byte until the answer was whole."""
        return self.retrieval.timings.done if self.retrieval is not None else None
