"""From answers to the figures of an arm."""

from collections.abc import Collection, Mapping, Sequence

from memconform.bench.answering.records import ArmAnswer, KeptGain
from memconform.datasets.question import Question
from memconform.scoring.accuracy import Accuracy, Estimate, accuracy
from memconform.scoring.statuses import QuestionStatus
from memconform.stats.ratios import ratio_interval

ORACLE, NO_MEMORY = "oracle", "no-memory"
"""The arms between which a gain is measured."""

_NOT_SHOWN = ("not_retrieved", "gold_unknown")
"""Codes of questions whose evidence nobody knows."""

Outcomes = Mapping[str, bool]
"""By question id, whether the answer is right; questions that were not measured are absent."""


def measured_outcomes(records: Collection[ArmAnswer]) -> dict[str, bool]:
    """Which answers are right, of those that were measured."""
    return {
        record.question: record.status is QuestionStatus.CORRECT
        for record in records
        if record.status.measured
    }


def by_gold(
    questions: Sequence[Question],
    records: Collection[ArmAnswer],
    clusters: Mapping[str, str] | None,
) -> tuple[Accuracy | None, Accuracy | None]:
    """The accuracy where all gold was shown, and where some was not; None without questions.

    Questions to abstain from are in neither. One of which it is not known what was shown, because
    its retrieval was not measured, may belong to either: it counts in both as not measured.
    """
    known = {record.question: record.gold_shown for record in records}
    unknown = {record.question for record in records if record.code in _NOT_SHOWN}
    right = measured_outcomes(records)
    if not any(value is not None for value in known.values()):
        return None, None

    def of(*, shown: bool) -> Accuracy | None:
        chosen = [
            question
            for question in questions
            if known.get(question.id) is shown or (question.id in unknown and not question.abstain)
        ]
        return accuracy(chosen, right, clusters) if chosen else None

    return of(shown=True), of(shown=False)


def kept_gain(
    questions: Sequence[Question],
    arm: Outcomes,
    oracle: Outcomes | None,
    no_memory: Outcomes | None,
    clusters: Mapping[str, str] | None,
) -> KeptGain:
    """The share of the gain of perfect retrieval over no memory that an arm keeps."""
    for name, outcomes in ((ORACLE, oracle), (NO_MEMORY, no_memory), ("this arm", arm)):
        if outcomes is None:
            return KeptGain(share=None, why=f"{name} is not among the arms")
        if any(question.id not in outcomes for question in questions):
            return KeptGain(share=None, why=f"{name} was not measured on every question")
    assert oracle is not None  # noqa: S101 - for mypy
    assert no_memory is not None  # noqa: S101 - for mypy
    ids = [question.id for question in questions]
    numerator = [float(arm[name] - no_memory[name]) for name in ids]
    denominator = [float(oracle[name] - no_memory[name]) for name in ids]
    units = [clusters[name] if clusters else name for name in ids]
    # Equal outcomes on a sample do not make two arms equal.
    equal = ORACLE if numerator == denominator else NO_MEMORY if not any(numerator) else None
    interval = ratio_interval(numerator, denominator, units)
    if interval is None:
        return KeptGain(
            share=None, why=f"the gain of {ORACLE} over {NO_MEMORY} is not significantly above 0"
        )
    if equal is not None:
        return KeptGain(share=None, why=f"the same outcome as {equal} on every question")
    share = sum(numerator) / sum(denominator)
    return KeptGain(
        share=Estimate(value=100 * share, low=100 * interval.low, high=100 * interval.high), why=""
    )
