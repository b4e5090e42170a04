"""The stages of an attempt as the journal stores them: retrieval, answer, judgement."""

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
    """What an attempt retrieved."""

    stage: Literal["retrieval"] = "retrieval"
    row: int
    attempt: int
    id: str = ""
    """The question's id; empty in journals of versions 1 and 2."""
    mode: str
    ranking: list[RankedChunk]
    null_chunks: bool = False
    """Whether the daemon sent null for the empty ranking."""
    trace: dict[str, Any]
    timings: CallTimings
    first_hit: int | None = None
    seen: WireFingerprint | None = None


class AnswerRecord(Record):
    """The scored text, whether written by a reader or returned by a search."""

    stage: Literal["answer"] = "answer"
    row: int
    attempt: int
    text: str
    citations: list[CitedChunk]
    redacted: bool = False
    """Whether secrets are masked in the stored text; the unmasked text was scored."""


class JudgementRecord(Record):
    """The verdict on an attempt; one without a score was not measured, and has an error."""

    stage: Literal["judgement"] = "judgement"
    row: int
    attempt: int
    id: str
    """The question's id, so that another version of the dataset is recognized."""
    verdict: QuestionStatus
    score: float | None = Field(ge=0, le=1)
    error: Failure | None
    reason: str = ""
    """The scorer's explanation, if it gives one."""
    detail: dict[str, Any] = Field(default_factory=dict)
    """Further output of the scorer."""

    @classmethod
    def of(cls, score: Score, *, row: int, attempt: int, id: str) -> "JudgementRecord":  # noqa: A002 - the field's name
        """Convert a score; a scorer that failed yields an unmeasured attempt with the reason."""
        status = score.status
        failure = None if status.measured else Failure(code=status.value, message=score.reason)
        return cls(
            row=row,
            attempt=attempt,
            id=id,
            verdict=status,
            score=score.value,
            error=failure,
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
    """The stages of one attempt at a question that are known so far."""

    row: int
    attempt: int
    number: int = 0
    """The attempt's number in its journal, from 0, in the order in which answers ended."""
    retrieval: RetrievalRecord | None = None
    answer: AnswerRecord | None = None
    judgement: JudgementRecord | None = None

    def add(self, record: StageRecord) -> None:
        """Set a stage."""
        match record:
            case RetrievalRecord():
                self.retrieval = record
            case AnswerRecord():
                self.answer = record
            case JudgementRecord():
                self.judgement = record

    def records(self) -> list[StageRecord]:
        """The known stages in order."""
        stages = (self.retrieval, self.answer, self.judgement)
        return [record for record in stages if record is not None]

    def at(self, row: int) -> "AttemptRecords":
        """The same attempt at the question of another row: that of a larger selection."""
        moved = AttemptRecords(row, self.attempt, self.number)
        for record in self.records():
            moved.add(record.model_copy(update={"row": row}))
        return moved

    @property
    def question_id(self) -> str:
        """The question's id; empty if no stage contains it."""
        if self.judgement is not None:
            return self.judgement.id
        return self.retrieval.id if self.retrieval is not None else ""

    @property
    def measured(self) -> bool:
        """Whether the attempt has a score."""
        return self.judgement is not None and self.judgement.verdict.measured

    @property
    def lacks_judgement(self) -> bool:
        """Whether the daemon has answered and only the judgement is missing or failed."""
        verdict = self.judgement.verdict if self.judgement is not None else None
        return self.answer is not None and verdict in (None, QuestionStatus.JUDGE_ERROR)

    @property
    def latency_ms(self) -> float | None:
        """From the request's last piece to the complete answer; None without a retrieval."""
        return self.retrieval.timings.done if self.retrieval is not None else None
