"""LoCoMo's scores by words. Needs the extra `qa`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import fsum

from memconform.bench.qa.records import TextMetric, TextRecord, TextScores
from memconform.datasets.question import Question
from memconform.scoring.accuracy import estimate
from memconform.scoring.answer_text import bleu1, locomo_f1, reference_text
from memconform.stats.clusters import mean_interval


def text_records(questions: Iterable[Question], answers: Mapping[str, str]) -> list[TextRecord]:
    """The scores of each answer; questions without a reference answer have no BLEU-1."""
    return [
        TextRecord(
            question=question.id,
            category=question.category,
            f1=locomo_f1(question, answers[question.id]),
            bleu1=bleu1(answers[question.id], reference)
            if (reference := reference_text(question))
            else None,
        )
        for question in questions
    ]


def text_scores(
    expected: Sequence[Question], records: Iterable[TextRecord], clusters: Mapping[str, str]
) -> TextScores:
    """Means over the expected questions, and by category.

    Args:
        expected: the questions that count.
        records: the scores of answers, also to other questions.
        clusters: the conversation of each question.
    """
    by_id = {record.question: record for record in records}
    categories = sorted({question.category for question in expected})

    def metric(
        questions: Sequence[Question], value: Callable[[TextRecord], float | None]
    ) -> TextMetric:
        values = {
            question.id: number
            for question in questions
            if (record := by_id.get(question.id)) is not None
            and (number := value(record)) is not None
        }
        return text_metric(len(questions), values, clusters)

    def of(category: str) -> list[Question]:
        return [question for question in expected if question.category == category]

    with_reference = [question for question in expected if question.answers]
    return TextScores(
        f1=metric(expected, lambda record: record.f1),
        bleu1=metric(with_reference, lambda record: record.bleu1) if with_reference else None,
        f1_by_category={name: metric(of(name), lambda record: record.f1) for name in categories},
        bleu1_by_category={
            name: metric(of(name), lambda record: record.bleu1)
            for name in categories
            if any(question.answers for question in of(name))
        },
    )


def text_metric(
    expected: int, values: Mapping[str, float], clusters: Mapping[str, str]
) -> TextMetric:
    """The mean of values by question, which are fractions, over `expected` questions."""
    if not values:
        return TextMetric(questions=expected, answered=0, mean=None, of_answered=None)
    mean = fsum(values.values()) / len(values)
    complete = None
    if len(values) == expected:
        interval = mean_interval(list(values.values()), [clusters[name] for name in values])
        complete = estimate(mean, interval)
    return TextMetric(
        questions=expected, answered=len(values), mean=complete, of_answered=100 * mean
    )
