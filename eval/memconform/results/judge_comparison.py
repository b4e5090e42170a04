"""Two judgements of the same answers: how far they agree, and where they do not."""

from collections.abc import Callable
from itertools import zip_longest
from typing import Literal

from memconform.errors import UsageError
from memconform.printing.commands import suggested_command
from memconform.records import Record
from memconform.results.loaded_runs import LoadedRun
from memconform.runs.results import QuestionResult
from memconform.stats.raters import cohen_kappa

COMPARISON_SCHEMA: Literal["memconform/judge-comparison@1"] = "memconform/judge-comparison@1"


class Disagreement(Record):
    """A question on which two judgements of one answer differ."""

    id: str
    question: str
    answer: str
    verdicts: tuple[str, str]
    reasons: tuple[str, str]


class JudgeComparison(Record):
    """Two judgements of the same answers."""

    schema_version: Literal["memconform/judge-comparison@1"] = COMPARISON_SCHEMA
    runs: tuple[str, str]
    scorers: tuple[str, str]
    """The judges of each, or the name of the scorer."""
    compared: int
    """Answers that both judged."""
    not_compared: int
    """Questions that one of them did not measure, or whose answers differ."""
    settled: int
    """Questions whose answers needed no judge, so that two judges could not differ."""
    equal: int
    agreement: float | None
    cohen_kappa: float | None
    """None where both give one verdict throughout."""
    both_pass: int
    first_only: int
    second_only: int
    both_fail: int
    disagreements: list[Disagreement]


def compare_judgements(first: LoadedRun, second: LoadedRun) -> JudgeComparison:
    """Compare two runs' verdicts on equal answers to the same questions.

    Raises:
        UsageError: `not_one_dataset`, where the runs asked different questions.
    """
    verdicts: list[tuple[bool, bool]] = []
    disagreements: list[Disagreement] = []
    skipped = settled = 0
    both_judged = first.summary.judging is not None and second.summary.judging is not None
    for one, other in zip_longest(first.questions(), second.questions()):
        if one is None or other is None or one.id != other.id:
            raise UsageError(
                f"{first.summary.run_id} and {second.summary.run_id} asked different questions",
                code="not_one_dataset",
                hint="judge the answers of one run anew, and compare its two results: "
                + suggested_command("score", first.path, "--scorer", "judge"),
            )
        if not one.verdict.expected:
            continue
        if not (one.verdict.measured and other.verdict.measured and one.answer == other.answer):
            skipped += 1
            continue
        if both_judged and not (one.judges and other.judges):
            settled += 1
            continue
        verdicts.append((one.passed, other.passed))
        if one.passed != other.passed:
            disagreements.append(
                Disagreement(
                    id=one.id,
                    question=one.question,
                    answer=one.answer or "",
                    verdicts=(one.verdict.value, other.verdict.value),
                    reasons=(_reason(one), _reason(other)),
                )
            )
    equal = sum(mine == yours for mine, yours in verdicts)
    return JudgeComparison(
        runs=(first.summary.run_id, second.summary.run_id),
        scorers=(_scorer(first), _scorer(second)),
        compared=len(verdicts),
        not_compared=skipped,
        settled=settled,
        equal=equal,
        agreement=equal / len(verdicts) if verdicts else None,
        cohen_kappa=cohen_kappa([v[0] for v in verdicts], [v[1] for v in verdicts]),
        both_pass=_count(verdicts, lambda mine, yours: mine and yours),
        first_only=_count(verdicts, lambda mine, yours: mine and not yours),
        second_only=_count(verdicts, lambda mine, yours: yours and not mine),
        both_fail=_count(verdicts, lambda mine, yours: not mine and not yours),
        disagreements=disagreements,
    )


def _count(verdicts: list[tuple[bool, bool]], where: Callable[[bool, bool], bool]) -> int:
    return sum(where(*pair) for pair in verdicts)


def _reason(result: QuestionResult) -> str:
    return result.reason or "no reason is kept"


def _scorer(run: LoadedRun) -> str:
    judging = run.summary.judging
    if judging is None:
        return run.summary.scorer
    return ", ".join(use.model for use in judging.judges)
