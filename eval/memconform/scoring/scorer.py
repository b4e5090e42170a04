"""What a scorer is: it makes a score of a question and of what a daemon answered."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from memconform.contract.wire import JsonValue
from memconform.datasets.model import Question
from memconform.scoring.statuses import QuestionStatus

TextKind = Literal["answer", "retrieval"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonResponse:
    """What a daemon answered, as far as it is scored: what the journal keeps, so that a judgement
    can be made again."""

    text: str
    """The reader's answer, or the retrieved text."""
    kind: TextKind


@dataclass(frozen=True, slots=True)
class Score:
    value: float | None
    """In [0, 1]; None where the scorer failed, which no score may hide."""
    status: QuestionStatus
    reason: str = ""
    """Why, where a scorer says so."""
    detail: Mapping[str, JsonValue] = field(default_factory=dict)
    """What else it says, for the journal."""


class Scorer(Protocol):
    """Scores responses; a failure of its own is a Score of status `judge_error`, never a value."""

    @property
    def name(self) -> str:
        """As `--scorer` has it."""
        ...

    @property
    def in_process(self) -> bool:
        """Whether a score is there at once; others are waited for beside the next questions."""
        ...

    def require_scorable(self, questions: Iterable[Question]) -> None:
        """Raise UsageError naming a question that this scorer could never pass."""
        ...

    async def score(self, question: Question, response: DaemonResponse) -> Score:
        """The score of one response to `question`."""
        ...
