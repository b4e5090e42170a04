"""From judgements of answers to accuracies."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import fmean

from memconform.bench.qa.records import Judgement, Span
from memconform.bench.tasks import ALL, UNDISPUTED
from memconform.datasets.question import Question
from memconform.scoring.statuses import QuestionStatus


def views(
    expected: Iterable[Question], disputed: Collection[str] | None
) -> dict[str, list[Question]]:
    """The questions of each view; `disputed` is None without an errata file."""
    questions = list(expected)
    if disputed is None:
        return {ALL: questions}
    return {ALL: questions, UNDISPUTED: [q for q in questions if q.id not in disputed]}


def span(judgements: Mapping[str, Sequence[Judgement]]) -> Span | None:
    """How far rubrics differ on the answers that all of them measured.

    None for fewer than two rubrics, or without such an answer.
    """
    passed = {
        rubric: {
            each.question: each.status is QuestionStatus.CORRECT
            for each in rows
            if each.status.measured
        }
        for rubric, rows in judgements.items()
    }
    common = set.intersection(*(set(rows) for rows in passed.values())) if passed else set()
    if len(passed) < 2 or not common:
        return None
    rates = {
        rubric: fmean(100.0 * rows[question] for question in sorted(common))
        for rubric, rows in passed.items()
    }
    lowest, highest = min(rates, key=rates.__getitem__), max(rates, key=rates.__getitem__)
    return Span(
        answers=len(common),
        lowest=lowest,
        highest=highest,
        points=rates[highest] - rates[lowest],
    )
