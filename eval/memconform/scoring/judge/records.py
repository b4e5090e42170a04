"""What is kept of judging: each judge's vote on an answer, and the settings of a panel."""

import hashlib
from typing import Any, Literal

from pydantic import Field

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


class JudgeModel(Record):
    """A judge as it was asked for."""

    model: str
    """`provider:model`."""
    sampling: dict[str, Any]
    """The sampling parameters in force."""
    address: str = ""
    """The first 12 hex digits of the SHA-256 of the address, which may hold a password; empty for
    the vendor's own. Two servers may give one name to two models."""


def address_digest(address: str | None) -> str:
    """The digest of an address as `JudgeModel` has it."""
    return hashlib.sha256(address.encode()).hexdigest()[:12] if address else ""


class JudgeSettings(Record):
    """What decides a judgement; part of a run's settings."""

    models: list[JudgeModel]
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
    """Of each time that it was asked."""
    invalid_reply: str = ""
    """The first reply, if neither it nor the next one was a verdict."""
    cached: bool
    """Whether no call was made for it."""
    attempt: int = 0
    """Of the question, from 0."""
    input_tokens: int
    output_tokens: int
    cost_usd: float
