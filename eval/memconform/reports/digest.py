"""The failed and the slowest questions of a run, as lines of text."""

from memconform.printing.escaping import escape_line
from memconform.runs.highlights import FailedQuestions, Highlights
from memconform.runs.results import QuestionResult
from memconform.scoring.statuses import QuestionStatus

_WIDTH = 100
_JUDGE_FAILED = "memconform doctor --models, then memconform score RESULT to ask the judge again"


def failed_lines(highlights: Highlights, most: int | None = None) -> list[str]:
    """Format the failed questions, at most `most` causes, with a note if there are more.

    Questions that were not measured for the same cause are one, with the command of the first.
    """
    shown = highlights.failed[:most]
    lines = [f"{escape_line(_names(group))}: {_cause(group.first)}" for group in shown]
    more = highlights.failed_count - sum(group.count for group in shown)
    return [*lines, f"… and {more} more, all in the result file"] if more else lines


def slowest_lines(highlights: Highlights) -> list[str]:
    """Format the slowest questions with their latencies in milliseconds."""
    return [f"{result.id}: {result.latency_ms or 0:.1f} ms" for result in highlights.slowest]


def _names(group: FailedQuestions) -> str:
    if group.count == 1:
        return group.first.id
    more = ", …" if group.count > len(group.ids) else ""
    return f"{group.count} questions ({', '.join(group.ids)}{more})"


def _cause(result: QuestionResult) -> str:
    if result.error is not None:
        names = dict.fromkeys((result.verdict.value, result.error.code))
        cause = escape_line(f"{', '.join(names)}: {result.error.message}")
        advice = result.error.hint
        if result.verdict is QuestionStatus.JUDGE_ERROR and result.error.message.startswith("llm_"):
            advice = advice or _JUDGE_FAILED
        hint = f"try: {advice}" if advice else ""
        more = [escape_line(line) for line in (hint, result.error.curl) if line]
        return "\n    ".join([cause, *more])
    answer = " ".join((result.answer or "").split())
    shown = answer if len(answer) <= _WIDTH else f"{answer[:_WIDTH]}…"
    reason = f" ({result.reason})" if result.reason else ""
    return escape_line(f"{result.verdict.value}: {result.question} → {shown or 'no text'}{reason}")
