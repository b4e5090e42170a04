"""The few questions of a run that a report shows."""

import heapq
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

from memconform.runs.results import QuestionResult

_MOST_FAILED = 10
_MOST_SLOW = 3
_MOST_IDS = 3
_NUMBER = re.compile(r"\d+")


@dataclass(slots=True)
class FailedQuestions:
    """Questions that failed from the same cause; each that was measured is its own."""

    first: QuestionResult
    count: int = 0
    ids: list[str] = field(default_factory=list)
    """The first of them."""

    def add(self, result: QuestionResult) -> None:
        """Add a question with the cause of the first one."""
        self.count += 1
        if len(self.ids) < _MOST_IDS:
            self.ids.append(result.id)


@dataclass(slots=True)
class Highlights:
    """The first failed and the slowest questions; memory use does not grow with the run."""

    failed: list[FailedQuestions] = field(default_factory=list)
    failed_count: int = 0
    """All questions that did not pass, including those in `failed`."""
    _by_cause: dict[tuple[str, ...], FailedQuestions] = field(default_factory=dict)
    _slowest: list[tuple[float, int, QuestionResult]] = field(default_factory=list)
    _order: Iterator[int] = field(default_factory=count)

    def add(self, result: QuestionResult) -> None:
        """Add the result of a question that was asked."""
        if not result.passed:
            self.failed_count += 1
            self._add_failed(result)
        if result.latency_ms is not None:
            heapq.heappush(self._slowest, (result.latency_ms, next(self._order), result))
            if len(self._slowest) > _MOST_SLOW:
                heapq.heappop(self._slowest)

    def _add_failed(self, result: QuestionResult) -> None:
        cause: tuple[str, ...] = (result.verdict.value, result.id)
        if (error := result.error) is not None:
            # Messages of one cause differ in indices and counts.
            cause = (result.verdict.value, error.code, _NUMBER.sub("0", error.message))
        group = self._by_cause.get(cause)
        if group is None and len(self.failed) < _MOST_FAILED:
            group = self._by_cause[cause] = FailedQuestions(result)
            self.failed.append(group)
        if group is not None:
            group.add(result)

    @property
    def slowest(self) -> list[QuestionResult]:
        """The slowest questions, slowest first."""
        return [result for _, _, result in sorted(self._slowest, reverse=True)]
