"""The few questions of a run that a person wants to see, as lines."""

from memconform.printing.escaping import escape_line
from memconform.runs.highlights import Highlights
from memconform.runs.results import QuestionResult

_WIDTH = 100


def failed_lines(highlights: Highlights) -> list[str]:
    lines = [f"{escape_line(result.id)}: {_why(result)}" for result in highlights.failed]
    more = highlights.failed_count - len(highlights.failed)
    return [*lines, f"… and {more} more, all in the result file"] if more else lines


def slowest_lines(highlights: Highlights) -> list[str]:
    return [f"{result.id}: {result.latency_ms or 0:.1f} ms" for result in highlights.slowest]


def _why(result: QuestionResult) -> str:
    if result.error is not None:
        why = escape_line(f"{result.verdict.value}, {result.error.code}: {result.error.message}")
        return f"{why}\n    {escape_line(result.error.curl)}" if result.error.curl else why
    answer = " ".join((result.answer or "").split())
    shown = answer if len(answer) <= _WIDTH else f"{answer[:_WIDTH]}…"
    return escape_line(f"{result.verdict.value}: {result.question} → {shown or 'no text'}")
