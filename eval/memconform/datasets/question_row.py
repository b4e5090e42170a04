"""The schema of a row of a question set, NAME.jsonl."""

import re
from datetime import date, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from memconform.datasets.invisible import is_blank
from memconform.datasets.question import Question

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_INSTANT = re.compile(_DAY.pattern + r"[Tt][0-9:]{8}(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})")


def _moment(value: str) -> str:
    if _DAY.fullmatch(value):
        date.fromisoformat(value)
    elif _INSTANT.fullmatch(value):
        datetime.fromisoformat(value.upper())
    else:
        raise ValueError("is neither YYYY-MM-DD nor an RFC 3339 date-time")
    return value


def _not_blank(value: str) -> str:
    if is_blank(value):
        detail = f": {value[:20]!a} has no visible character" if value.strip() else ""
        raise ValueError(f"must not be blank{detail}")
    return value


NonBlank = Annotated[str, AfterValidator(_not_blank)]


class QuestionRow(BaseModel):
    """One line of a question set."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)

    id: NonBlank
    question: NonBlank
    question_date: Annotated[str, AfterValidator(_moment)] | None = None
    """`YYYY-MM-DD` or RFC 3339: the day on which the question is asked."""
    expected_substrings: list[NonBlank] = Field(default_factory=list, max_length=16)
    match: Literal["any", "all"] = "any"
    word: bool = False
    case_sensitive: bool = False
    reference_answer: NonBlank | None = None
    abstain: bool = False
    abstain_marker: NonBlank | None = None
    evidence: list[NonBlank] = Field(default_factory=list)
    """Paths of the documents that contain the answer."""
    tags: list[NonBlank] = Field(default_factory=list)
    cluster: NonBlank | None = None
    """The same for questions that are not independent, such as those about one conversation."""

    def to_question(self) -> Question:
        """The row as a `Question`; its first tag becomes the category."""
        return Question(
            id=self.id,
            question=self.question,
            category=self.tags[0] if self.tags else "",
            gold=tuple(dict.fromkeys(self.evidence)),
            answers=() if self.reference_answer is None else (self.reference_answer,),
            expected_substrings=tuple(self.expected_substrings),
            match=self.match,
            word=self.word,
            case_sensitive=self.case_sensitive,
            question_date=self.question_date,
            abstain=self.abstain,
            abstain_marker=self.abstain_marker,
            tags=tuple(self.tags),
            cluster=self.cluster,
        )
