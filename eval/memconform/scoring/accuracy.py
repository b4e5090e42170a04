"""From judgements of answers to accuracies, with bounds where questions were not measured."""

from collections.abc import Collection, Mapping, Sequence

from memconform.datasets.question import Question
from memconform.records import Record
from memconform.stats.clusters import mean_interval
from memconform.stats.intervals import Interval
from memconform.stats.mean_of_rates import clustered_mean_of_rates, mean_of_rates


class Estimate(Record):
    """A mean in percent with its 95 % confidence interval."""

    value: float
    low: float
    high: float


class Accuracy(Record):
    """How many of the expected questions were answered right, in percent."""

    expected: int
    measured: int
    correct: int
    rate: Estimate | None
    """With its 95 % interval; null unless every expected question was measured."""
    bounds: tuple[float, float] | None
    """The rate if all unmeasured questions were wrong, or right; null without questions."""
    of_measured: float | None
    """The rate of the measured questions alone, which says nothing about the others."""


class TaskAverage(Record):
    """The mean of the accuracies of all categories."""

    categories: int
    rate: Estimate | None
    """Null unless every expected question was measured."""


class QaScores(Record):
    """Accuracies over a set of questions."""

    overall: Accuracy
    task_averaged: TaskAverage
    abstention: Accuracy
    """Accuracy on the questions that cannot be answered; they count in their categories, too."""
    by_category: dict[str, Accuracy]


def qa_scores(
    questions: Sequence[Question],
    passed: Mapping[str, bool],
    clusters: Mapping[str, str] | None = None,
    *,
    categories: Collection[str],
) -> QaScores:
    """The accuracies over some questions.

    Args:
        questions: those that are expected to have been measured.
        passed: by question id, whether the answer is right; unmeasured ones are absent.
        clusters: the conversation of each question; None if each has its own.
        categories: all of the benchmark; the task average needs a rate of each.
    """
    by_category: dict[str, list[Question]] = {}
    for question in questions:
        by_category.setdefault(question.category, []).append(question)
    accuracies = {
        name: accuracy(by_category[name], passed, clusters) for name in sorted(by_category)
    }
    return QaScores(
        overall=accuracy(questions, passed, clusters),
        task_averaged=_task_average(
            accuracies, categories, _by_cluster(by_category, passed, clusters)
        ),
        abstention=accuracy([q for q in questions if q.abstain], passed, clusters),
        by_category=accuracies,
    )


def accuracy(
    questions: Sequence[Question],
    passed: Mapping[str, bool],
    clusters: Mapping[str, str] | None = None,
) -> Accuracy:
    """The accuracy over some questions; arguments as of `qa_scores`."""
    outcomes = {question.id: passed[question.id] for question in questions if question.id in passed}
    expected, measured, correct = len(questions), len(outcomes), sum(outcomes.values())
    rate = None
    if expected and measured == expected:
        interval = _interval(outcomes, clusters)
        rate = estimate(correct / expected, interval)
    missing = expected - measured
    return Accuracy(
        expected=expected,
        measured=measured,
        correct=correct,
        rate=rate,
        bounds=(100 * correct / expected, 100 * (correct + missing) / expected)
        if expected
        else None,
        of_measured=100 * correct / measured if measured else None,
    )


def _interval(passed: Mapping[str, bool], clusters: Mapping[str, str] | None) -> Interval:
    units = [clusters[name] if clusters else name for name in passed]
    return mean_interval([float(value) for value in passed.values()], units)


def estimate(mean: float, interval: tuple[float, float]) -> Estimate:
    """A fraction and its interval in percent."""
    return Estimate(value=100 * mean, low=100 * interval[0], high=100 * interval[1])


def _by_cluster(
    by_category: Mapping[str, Sequence[Question]],
    passed: Mapping[str, bool],
    clusters: Mapping[str, str] | None,
) -> list[dict[str, tuple[int, int]]]:
    """Right answers and questions of each category, by conversation."""
    tables = []
    for questions in by_category.values():
        table: dict[str, tuple[int, int]] = {}
        for question in questions:
            cluster = clusters[question.id] if clusters else question.id
            right, asked = table.get(cluster, (0, 0))
            table[cluster] = (right + passed.get(question.id, False), asked + 1)
        tables.append(table)
    return tables


def _task_average(
    accuracies: Mapping[str, Accuracy],
    categories: Collection[str],
    tables: Sequence[Mapping[str, tuple[int, int]]],
) -> TaskAverage:
    rate = None
    measured = {name for name, accuracy in accuracies.items() if accuracy.rate is not None}
    if accuracies and measured == {*categories, *accuracies}:
        # The categories of LoCoMo share their ten conversations.
        shared = len(set().union(*tables)) < sum(map(len, tables))
        if shared:
            rate = estimate(*clustered_mean_of_rates(tables))
        else:
            rate = estimate(
                *mean_of_rates([(each.correct, each.expected) for each in accuracies.values()])
            )
    return TaskAverage(categories=len(accuracies), rate=rate)
