"""What is kept of judging: each judge's vote on an answer, and the settings of a panel."""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from memconform.contract.wire import JsonValue
from memconform.errors import MemconformError
from memconform.llm.chat import HaltingError
from memconform.llm.records import ModelSettings
from memconform.records import Record
from memconform.stats.intervals import wilson

TieRule = Literal["error", "correct", "incorrect"]

Group = Literal["right", "specific-wrong", "vague-wrong", "injected"]


class ErrorRate(Record):
    """How often a judge was wrong: about right answers it rejects, about wrong ones it accepts."""

    errors: int
    items: int
    """Items with a verdict."""
    rate: float | None
    interval: tuple[float, float]
    """Wilson, 95 %."""

    @classmethod
    def of(cls, errors: int, items: int) -> "ErrorRate":
        rate = errors / items if items else None
        return cls(errors=errors, items=items, rate=rate, interval=wilson(errors, items))


class JudgeSettings(Record):
    """What decides a judgement; part of a run's settings."""

    models: list[ModelSettings]
    prompt: str
    """The first 12 hex digits of the SHA-256 of the judge's prompt."""
    repeat: int = 1
    """Times that each judge is asked about an answer."""
    tie: TieRule = "error"
    """What an even split comes to."""


class JudgeVote(Record):
    """What one judge said of an answer."""

    model: str
    served_model: str
    """The model that the service says it used; empty where it does not say."""
    verdict: Literal["correct", "incorrect"] | None
    """None where the judge failed, or contradicted itself evenly."""
    score: float | None = Field(ge=0, le=1)
    reason: str
    """The judge's reason, or why there is no verdict."""
    verdicts: list[Literal["correct", "incorrect"]]
    """One verdict for each time that the judge was asked."""
    invalid_reply: str = ""
    """The first reply, if neither it nor the next one was a verdict."""
    cached: bool
    """Whether no call was made for it."""
    attempt: int = 0
    """Attempt at the question, from 0."""
    input_tokens: int
    output_tokens: int
    cost_usd: float


def votes_of(detail: Mapping[str, JsonValue]) -> list[JudgeVote]:
    """The votes in the detail of a score; empty if no judge was asked."""
    judges = detail.get("judges", [])
    return [JudgeVote.model_validate(vote) for vote in judges] if isinstance(judges, list) else []


def unfinished_votes(error: MemconformError | None) -> list[JudgeVote]:
    """The votes of panels that an error ended before they decided."""
    if not isinstance(error, HaltingError):
        return []
    return [JudgeVote.model_validate(vote) for vote in error.unfinished]
