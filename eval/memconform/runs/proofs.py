"""Which attempts count: those that a proof of the index has followed."""

from bisect import bisect_right
from dataclasses import replace
from typing import Literal

from memconform.ingest.records import IndexInvalidated, IndexVerified
from memconform.records import Failure, Record
from memconform.runs.stages import AttemptRecords, JudgementRecord
from memconform.scoring.statuses import QuestionStatus

_OF_THE_DAEMON = frozenset(
    {
        *("brain_changed", "daemon_gone", "index_not_proven", "index_pending"),
        *("not_confirmed", "not_searchable"),
    }
)
"""Codes of doubts that say what became of the daemon; all others are of what it sent."""
_UNPROVEN = Failure(
    code="index_not_proven",
    message="the index was not seen to be whole after this question",
)


class Retraction(Record):
    """An attempt that was taken for measured, and is not: it could not be confirmed."""

    stage: Literal["retraction"] = "retraction"
    number: int
    """Of the attempt in this journal, from 0."""
    error: Failure


Statement = IndexVerified | IndexInvalidated | Retraction
"""What is said of attempts after their end."""


class Proofs:
    """Which attempts of a journal are measurements, by their number from 0.

    An attempt counts once its index was verified after its end, and unless it was invalidated or
    retracted. The same holds while a run lasts and when its journal is read again.
    """

    def __init__(self, *, trusting: bool = False, strict: bool = False) -> None:
        """`trusting` is for journals that were written before there were proofs.

        With `strict`, attempts do not count that --no-reproof was content with.
        """
        self._trusting = trusting
        self._strict = strict
        self._bounds: list[int] = []
        self._failures: list[Failure | None] = []
        self._retracted: dict[int, Failure] = {}

    @property
    def settled(self) -> int:
        """How many attempts something was said of."""
        return self._bounds[-1] if self._bounds else 0

    def add(self, statement: Statement) -> None:
        match statement:
            case Retraction():
                self._retracted[statement.number] = statement.error
            case IndexVerified(attempts=int() as bound):
                unproven = self._strict and not statement.reproof
                self._append(bound, _UNPROVEN if unproven else None)
            case IndexInvalidated(attempts=int() as bound):
                if statement.since is not None:
                    self._cut(statement.since)
                self._append(bound, statement.error)

    def _append(self, bound: int, failure: Failure | None) -> None:
        if bound > self.settled:
            self._bounds.append(bound)
            self._failures.append(failure)

    def _cut(self, since: int) -> None:
        """Forget what was said of attempts from `since` on."""
        failure: Failure | None = None
        while self.settled > since:
            self._bounds.pop()
            failure = self._failures.pop()
        self._append(since, failure)

    def apply(self, attempt: AttemptRecords) -> AttemptRecords:
        """An attempt as it counts: as it was measured, or why it is no measurement."""
        if not (attempt.measured or attempt.lacks_judgement):
            return attempt
        failure = self._failure(attempt.number)
        if failure is None:
            return attempt
        judgement = JudgementRecord(
            row=attempt.row,
            attempt=attempt.attempt,
            id=attempt.question_id,
            verdict=(
                QuestionStatus.DAEMON_ERROR
                if failure.code in _OF_THE_DAEMON
                else QuestionStatus.PROTOCOL_ERROR
            ),
            score=None,
            error=failure,
        )
        return replace(attempt, retrieval=None, answer=None, judgement=judgement)

    def _failure(self, number: int) -> Failure | None:
        """Why the attempt of that number does not count."""
        if (failure := self._retracted.get(number)) is not None:
            return failure
        place = bisect_right(self._bounds, number)
        if place < len(self._bounds):
            return self._failures[place]
        return None if self._trusting else _UNPROVEN
