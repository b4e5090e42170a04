"""The scorer protocol: a question and a daemon's response in, a score out."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from memconform.contract.wire import JsonValue
from memconform.datasets.question import Question, TextKind
from memconform.scoring.statuses import QuestionStatus

if TYPE_CHECKING:
    from memconform.scoring.judge.calibration import Calibration
    from memconform.scoring.judge.records import JudgeSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonResponse:
    """The part of a daemon's answer that is scored.

    The journal stores it, so that a judgement can be repeated without the daemon.
    """

    text: str
    """The reader's answer, or the retrieved text."""
    kind: TextKind


@dataclass(frozen=True, slots=True)
class Score:
    """The result of scoring one response."""

    value: float | None
    """In [0, 1]; None if the scorer failed, because no score may hide that."""
    status: QuestionStatus
    reason: str = ""
    """The scorer's explanation, if it gives one."""
    detail: Mapping[str, JsonValue] = field(default_factory=dict)
    """Further output of the scorer, stored in the journal."""


class Scorer(Protocol):
    """Scores responses.

    A scorer that fails returns a Score with status `judge_error` and no value.
    """

    @property
    def name(self) -> str:
        """The name that `--scorer` takes."""
        ...

    @property
    def in_process(self) -> bool:
        """Whether scoring is immediate; other scorers run concurrently with the next questions."""
        ...

    def require_scorable(self, questions: Iterable[Question]) -> None:
        """Raise UsageError if this scorer could never pass one of the questions."""
        ...

    async def score(self, question: Question, response: DaemonResponse) -> Score:
        """Score one response to `question`."""
        ...


@dataclass(frozen=True, slots=True)
class OpenScorer:
    """A scorer that can be used, and what a plan and a result say of it."""

    scorer: Scorer
    judge: "JudgeSettings | None" = None
    calibrations: Mapping[str, "Calibration | None"] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """As `--scorer` has it."""
        return self.scorer.name
