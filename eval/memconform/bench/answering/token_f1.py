"""LoCoMo's official F1 of the answers of an arm. Needs the extra `qa`."""

from collections.abc import Mapping, Sequence

from memconform.bench.answering.records import ArmAnswer
from memconform.bench.qa.records import TextMetric
from memconform.bench.qa.text_scores import text_metric
from memconform.datasets.question import Question
from memconform.scoring.answer_text import locomo_f1


def with_f1(questions: Sequence[Question], records: Sequence[ArmAnswer]) -> list[ArmAnswer]:
    """The records with the F1 of each answer; questions and records are in the same order."""
    return [
        record
        if record.answer is None
        else record.model_copy(update={"f1": locomo_f1(question, record.answer)})
        for question, record in zip(questions, records, strict=True)
    ]


def mean_f1(records: Sequence[ArmAnswer], clusters: Mapping[str, str]) -> TextMetric:
    """The mean F1 of an arm, in percent."""
    values = {record.question: record.f1 for record in records if record.f1 is not None}
    return text_metric(len(records), values, clusters)
