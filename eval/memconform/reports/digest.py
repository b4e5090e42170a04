"""The few questions of a run that a person wants to see."""

import heapq
from itertools import count

from memconform.printing.escaping import escape_line
from memconform.runs.results import QuestionResult

_FAILED_SHOWN = 10
_SLOWEST_SHOWN = 3
_WIDTH = 100


class Digest:
    """Keeps the first failed and the slowest questions, however many there are."""

    def __init__(self) -> None:
        self._failed: list[QuestionResult] = []
        self._failed_count = 0
        self._slowest: list[tuple[float, int, QuestionResult]] = []
        self._order = count()

    def add(self, result: QuestionResult) -> None:
        if not result.passed:
            self._failed_count += 1
            if len(self._failed) < _FAILED_SHOWN:
                self._failed.append(result)
        if result.latency_ms is not None:
            item = (result.latency_ms, next(self._order), result)
            heapq.heappush(self._slowest, item)
            if len(self._slowest) > _SLOWEST_SHOWN:
                heapq.heappop(self._slowest)

    def failed_lines(self) -> list[str]:
        lines = [f"{escape_line(result.id)}: {_why(result)}" for result in self._failed]
        more = self._failed_count - len(self._failed)
        return [*lines, f"… and {more} more, all in the result file"] if more else lines

    def slowest_lines(self) -> list[str]:
        return [
            f"{result.id}: {latency:.1f} ms"
            for latency, _, result in sorted(self._slowest, reverse=True)
        ]


def _why(result: QuestionResult) -> str:
    if result.error is not None:
        why = escape_line(f"{result.verdict.value}, {result.error.code}: {result.error.message}")
        return f"{why}\n    {escape_line(result.error.curl)}" if result.error.curl else why
    answer = " ".join((result.answer or "").split())
    shown = answer if len(answer) <= _WIDTH else f"{answer[:_WIDTH]}…"
    return escape_line(f"{result.verdict.value}: {result.question} → {shown or 'no text'}")
