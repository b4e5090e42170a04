"""The model of a question set."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from memconform.datasets.invisible import is_blank

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
        why = f": {value[:20]!a} has nothing that is seen" if value.strip() else ""
        raise ValueError(f"must not be blank{why}")
    return value


NonBlank = Annotated[str, AfterValidator(_not_blank)]


class Question(BaseModel):
    """One row: a question, and how its answer is judged."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    id: NonBlank
    question: NonBlank
    question_date: Annotated[str, AfterValidator(_moment)] | None = None
    """`YYYY-MM-DD` or RFC 3339: the day on which the question is asked."""
    expected_substrings: list[NonBlank] = Field(default_factory=list, max_length=16)
    match: Literal["any", "all"] = "any"
    word: bool = False
    """Whether an expected string must stand as whole words: "Au" is not in "August"."""
    case_sensitive: bool = False
    reference_answer: NonBlank | None = None
    abstain: bool = False
    """Whether the right answer is that the corpus holds none."""
    abstain_marker: NonBlank | None = None
    """An answer that equals it abstains, besides the phrases that always do."""
    evidence: list[NonBlank] = Field(default_factory=list)
    """Paths of the documents that hold the answer."""
    tags: list[NonBlank] = Field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Dataset:
    """A question set that has been read through once and found valid.

    Iterating reads the file anew, so that no more than a row is held.
    """

    name: str
    path: Path
    sha256: str
    size: int
    read: Callable[[Path], Iterator[Question]]

    def __iter__(self) -> Iterator[Question]:
        return self.read(self.path)
