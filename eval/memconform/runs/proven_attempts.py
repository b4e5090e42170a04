"""Decides which attempts count: those followed by a verification of the index."""

from bisect import bisect_right
from dataclasses import replace
from typing import Literal

from memconform.ingest.records import IndexInvalidated, IndexVerified
from memconform.records import Failure, Record
from memconform.runs.stages import AttemptRecords, JudgementRecord
from memconform.scoring.statuses import QuestionStatus

_DAEMON_CODES = frozenset(
    {
        *("brain_changed", "daemon_gone", "index_not_proven", "index_pending"),
        *("not_confirmed", "not_searchable", "upstream_not_called"),
    }
)
"""Codes that are daemon errors; all others are protocol errors."""


def _unproven() -> Failure:
    return Failure(
        code="index_not_proven",
        message="the index was not verified after this question",
    )


class Retraction(Record):
    """An attempt that no longer counts because its retrieval could not be confirmed."""

    stage: Literal["retraction"] = "retraction"
    number: int
    """The attempt's number in this journal, from 0."""
    error: Failure


Statement = IndexVerified | IndexInvalidated | Retraction
"""A statement about attempts that have ended."""


class Proofs:
    """Tracks which attempts of a journal count, by their number from 0.

    An attempt counts if the index was verified after its end and it was neither invalidated nor
    retracted. The same rules apply during a run and when its journal is read later.
    """

    def __init__(self, *, trusting: bool = False, strict: bool = False) -> None:
        """Start without statements.

        Args:
            trusting: count attempts without a statement, for journals that predate proofs.
            strict: do not count attempts for which only counts were compared (--no-reverify).
        """
        self._trusting = trusting
        self._strict = strict
        self._bounds: list[int] = []
        self._failures: list[Failure | None] = []
        self._retracted: dict[int, Failure] = {}

    @property
    def settled(self) -> int:
        """Number of attempts that are verified or invalidated."""
        return self._bounds[-1] if self._bounds else 0

    def add(self, statement: Statement) -> None:
        """Add the next statement of the journal."""
        match statement:
            case Retraction():
                self._retracted[statement.number] = statement.error
            case IndexVerified(attempts=int() as bound):
                unproven = self._strict and not statement.reproof
                self._append(bound, _unproven() if unproven else None)
            case IndexInvalidated(attempts=int() as bound):
                if statement.since is not None:
                    self._cut(statement.since)
                self._append(bound, statement.error)

    def _append(self, bound: int, failure: Failure | None) -> None:
        if bound > self.settled:
            self._bounds.append(bound)
            self._failures.append(failure)

    def _cut(self, since: int) -> None:
        """Drop verdicts about attempts from number `since` on."""
        failure: Failure | None = None
        while self.settled > since:
            self._bounds.pop()
            failure = self._failures.pop()
        self._append(since, failure)

    def apply(self, attempt: AttemptRecords) -> AttemptRecords:
        """Return the attempt unchanged if it counts, else with the failure as its judgement."""
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
                if failure.code in _DAEMON_CODES
                else QuestionStatus.PROTOCOL_ERROR
            ),
            score=None,
            error=failure,
        )
        return replace(attempt, retrieval=None, answer=None, judgement=judgement)

    def _failure(self, number: int) -> Failure | None:
        """Why an attempt does not count; None if it does."""
        if (failure := self._retracted.get(number)) is not None:
            return failure
        index = bisect_right(self._bounds, number)
        if index < len(self._bounds):
            return self._failures[index]
        return None if self._trusting else _unproven()
