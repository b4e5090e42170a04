"""From answers to the figures of an arm."""

from collections.abc import Collection, Mapping, Sequence

from memconform.bench.answering.records import AnswerRecord, KeptGain
from memconform.bench.qa.records import Accuracy
from memconform.bench.qa.scores import accuracy
from memconform.bench.records import Estimate
from memconform.datasets.model import Question
from memconform.scoring.statuses import QuestionStatus
from memconform.stats.ratios import ratio_interval

PERFECT, NOTHING = "oracle", "no-memory"
"""The arms between which a gain is measured."""

Passed = Mapping[str, bool]
"""By question id, whether the answer is right; questions that were not measured are absent."""


def passed(records: Collection[AnswerRecord]) -> dict[str, bool]:
    """Which answers are right, of those that were measured."""
    return {
        record.question: record.status is QuestionStatus.CORRECT
        for record in records
        if record.status.measured
    }


def by_gold(
    questions: Sequence[Question],
    records: Collection[AnswerRecord],
    clusters: Mapping[str, str] | None,
) -> tuple[Accuracy | None, Accuracy | None]:
    """The accuracy where all gold was shown, and where some was not; None without questions.

    Questions to abstain from are in neither. Which of the two an unmeasured question belongs to is
    not known, so that both are of measured questions.
    """
    given = {record.question: record.gold_shown for record in records if record.status.measured}
    right = passed(records)

    def of(chosen: list[Question]) -> Accuracy | None:
        return accuracy(chosen, right, clusters) if chosen else None

    return (
        of([question for question in questions if given.get(question.id) is True]),
        of([question for question in questions if given.get(question.id) is False]),
    )


def kept_gain(
    questions: Sequence[Question],
    arm: Passed,
    perfect: Passed | None,
    nothing: Passed | None,
    clusters: Mapping[str, str] | None,
) -> KeptGain:
    """The share of the gain of perfect retrieval over no memory that an arm keeps."""
    for name, outcomes in ((PERFECT, perfect), (NOTHING, nothing), ("this arm", arm)):
        if outcomes is None:
            return KeptGain(share=None, why=f"{name} is not among the arms")
        if any(question.id not in outcomes for question in questions):
            return KeptGain(share=None, why=f"{name} was not measured on every question")
    assert perfect is not None  # noqa: S101 - for mypy
    assert nothing is not None  # noqa: S101 - for mypy
    ids = [question.id for question in questions]
    above = [float(arm[name] - nothing[name]) for name in ids]
    below = [float(perfect[name] - nothing[name]) for name in ids]
    units = [clusters[name] if clusters else name for name in ids]
    interval = ratio_interval(above, below, units)
    if interval is None:
        return KeptGain(
            share=None, why=f"the gain of {PERFECT} over {NOTHING} cannot be told from 0"
        )
    share = sum(above) / sum(below)
    return KeptGain(
        share=Estimate(value=100 * share, low=100 * interval.low, high=100 * interval.high), why=""
    )
