"""LongMemEval's log of an evaluation, and what its released scripts print of one.

`src/evaluation/evaluate_qa.py` writes such a log, `print_qa_metrics.py` reads it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from memconform.bench.qa.records import Judgement, OfficialFigures, SubstringLabels
from memconform.datasets.question import Question
from memconform.scoring.statuses import QuestionStatus

ACCEPTED_MODEL: Final = "gpt-4o-2024-08-06"
"""print_qa_metrics.py asserts that every row names this model."""

_TYPES: Final = (
    *("single-session-user", "single-session-preference", "single-session-assistant"),
    *("multi-session", "temporal-reasoning", "knowledge-update"),
)
"""The question types in the order in which the script prints them."""


def log_rows(
    judgements: Iterable[Judgement], answers: Mapping[str, str], model: str
) -> Iterator[dict[str, Any]]:
    """The rows of a log: those that have a label. The released scripts know no other state."""
    for each in judgements:
        if each.status.measured:
            yield {
                "question_id": each.question,
                "hypothesis": answers[each.question],
                "autoeval_label": {
                    "model": model,
                    "label": each.status is QuestionStatus.CORRECT,
                },
            }


def official_figures(
    labels: Mapping[str, bool], questions: Mapping[str, Question], models: Sequence[str]
) -> OfficialFigures:
    """What print_qa_metrics.py computes of a log.

    A question of another type than LongMemEval's six is ignored here; the script ends there.

    Args:
        labels: of the log, by question id.
        questions: those of the benchmark, by id.
        models: that the log names.
    """
    by_type: dict[str, list[bool]] = {name: [] for name in _TYPES}
    abstention = []
    for name, label in labels.items():
        if (rows := by_type.get(questions[name].category)) is not None:
            rows.append(label)
        if "_abs" in name:
            abstention.append(label)
    means = [_mean(rows) for rows in by_type.values()]
    everything = [label for rows in by_type.values() for label in rows]
    return OfficialFigures(
        by_task={name: (_rounded(_mean(rows)), len(rows)) for name, rows in by_type.items()},
        task_averaged=_rounded(_mean(means)),
        overall=_rounded(_mean(everything)),
        abstention=(_rounded(_mean(abstention)), len(abstention)),
        model_accepted=list(models) == [ACCEPTED_MODEL],
    )


def official_lines(figures: OfficialFigures) -> list[str]:
    """The lines that print_qa_metrics.py prints, without empty ones."""
    return [
        "Evaluation results by task:",
        *(f"\t{name}: {_shown(rate)} ({rows})" for name, (rate, rows) in figures.by_task.items()),
        f"Task-averaged Accuracy: {_shown(figures.task_averaged)}",
        f"Overall Accuracy: {_shown(figures.overall)}",
        f"Abstention Accuracy: {_shown(figures.abstention[0])} ({figures.abstention[1]})",
    ]


def substring_labels(judgements: Iterable[Judgement]) -> SubstringLabels | None:
    """How labels by the letters `yes` differ from ours; None without such labels."""
    rows = [each for each in judgements if each.contains_yes is not None]
    if not rows:
        return None
    return SubstringLabels(
        correct=sum(each.status is QuestionStatus.CORRECT for each in rows),
        contains_yes=sum(bool(each.contains_yes) for each in rows),
        differing=[
            each.question
            for each in rows
            if each.contains_yes is not (each.status is QuestionStatus.CORRECT)
        ],
    )


def _mean(values: Sequence[float | None]) -> float | None:
    """The mean as numpy adds up to seven values, or integers: one after another."""
    total = 0.0
    for value in values:
        if value is None:
            return None
        total += value
    return total / len(values) if values else None


def _rounded(value: float | None) -> float | None:
    """A value to four digits, as numpy rounds: 0.00625 is 0.0062, where Python's round has 0.0063.

    Python rounds the exact binary value, numpy that times 10,000.
    """
    return None if value is None else round(value * 1e4) / 1e4


def _shown(value: float | None) -> str:
    return "nan" if value is None else str(value)
