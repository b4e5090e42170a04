"""The few questions of a run that a report shows."""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

from memconform.runs.results import QuestionResult

_MOST_FAILED = 10
_MOST_SLOW = 3


@dataclass(slots=True)
class Highlights:
    """The first failed and the slowest questions; memory use does not grow with the run."""

    failed: list[QuestionResult] = field(default_factory=list)
    failed_count: int = 0
    """All questions that did not pass, including those in `failed`."""
    _slowest: list[tuple[float, int, QuestionResult]] = field(default_factory=list)
    _order: Iterator[int] = field(default_factory=count)

    def add(self, result: QuestionResult) -> None:
        """Add the result of a question that was asked."""
        if not result.passed:
            self.failed_count += 1
            if len(self.failed) < _MOST_FAILED:
                self.failed.append(result)
        if result.latency_ms is not None:
            heapq.heappush(self._slowest, (result.latency_ms, next(self._order), result))
            if len(self._slowest) > _MOST_SLOW:
                heapq.heappop(self._slowest)

    @property
    def slowest(self) -> list[QuestionResult]:
        """The slowest questions, slowest first."""
        return [result for _, _, result in sorted(self._slowest, reverse=True)]
