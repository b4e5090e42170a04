"""The failed and the slowest questions of a run, as lines of text."""

from memconform.printing.escaping import escape_line
from memconform.runs.highlights import Highlights
from memconform.runs.results import QuestionResult

_WIDTH = 100


def failed_lines(highlights: Highlights, most: int | None = None) -> list[str]:
    """Format the failed questions, at most `most`, with a note if there are more."""
    shown = highlights.failed[:most]
    lines = [f"{escape_line(result.id)}: {_cause(result)}" for result in shown]
    more = highlights.failed_count - len(shown)
    return [*lines, f"… and {more} more, all in the result file"] if more else lines


def slowest_lines(highlights: Highlights) -> list[str]:
    """Format the slowest questions with their latencies in milliseconds."""
    return [f"{result.id}: {result.latency_ms or 0:.1f} ms" for result in highlights.slowest]


def _cause(result: QuestionResult) -> str:
    if result.error is not None:
        cause = escape_line(f"{result.verdict.value}, {result.error.code}: {result.error.message}")
        return f"{cause}\n    {escape_line(result.error.curl)}" if result.error.curl else cause
    answer = " ".join((result.answer or "").split())
    shown = answer if len(answer) <= _WIDTH else f"{answer[:_WIDTH]}…"
    reason = f" ({result.reason})" if result.reason else ""
    return escape_line(f"{result.verdict.value}: {result.question} → {shown or 'no text'}{reason}")
