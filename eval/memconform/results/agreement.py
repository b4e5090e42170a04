"""Exact agreement of runs, question by question: rankings, scores and answers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from memconform.errors import ExitCode
from memconform.records import Incident, Record
from memconform.results.divergence import (
    answer_difference,
    keys,
    largest_gap,
    ranking_difference,
)
from memconform.runs.results import QuestionResult
from memconform.runs.stored_run import read_questions

_SHOWN = 5


class RankingDifference(Record):
    """A question on which an SDK differs from the first SDK."""

    question: str
    sdk: str
    detail: str


class Agreement(Record):
    """How far the runs of several SDKs agree on one selection of questions.

    It is a fact about these questions and does not generalize to others.
    """

    sdks: list[str]
    questions: int
    compared: int
    """Questions that every SDK answered; the others are evidence in neither direction."""
    rankings_equal: int
    answers_equal: int | None
    """None for searches, which return no answers."""
    largest_score_difference: float
    """Over rankings of the same documents in the same order."""
    differences: list[RankingDifference]
    """The first few."""

    @property
    def complete(self) -> bool:
        """Whether every question was compared and all are equal."""
        return self.exit_code is ExitCode.OK

    @property
    def exit_code(self) -> ExitCode:
        """The exit code if agreement is required.

        FAILED for any difference, INCONCLUSIVE if some questions could not be compared.
        """
        answers = self.compared if self.answers_equal is None else self.answers_equal
        if self.rankings_equal < self.compared or answers < self.compared:
            return ExitCode.FAILED
        return ExitCode.OK if 0 < self.compared == self.questions else ExitCode.INCONCLUSIVE


@dataclass(slots=True)
class _Tally:
    questions: int = 0
    compared: int = 0
    rankings_equal: int = 0
    answers_equal: int = 0
    largest: float = 0.0
    differences: list[RankingDifference] = field(default_factory=list)

    def add_difference(self, question: str, sdk: str, detail: str) -> None:
        if len(self.differences) < _SHOWN:
            self.differences.append(RankingDifference(question=question, sdk=sdk, detail=detail))


def compare_rankings(
    runs: Sequence[tuple[str, Path]],
    *,
    answers: bool,
    incidents: Mapping[str, Incident | None] | None = None,
) -> Agreement:
    """Compare every run with the first.

    `runs` pairs SDK names with result files of the same questions. `incidents`, by SDK name, are
    what ended a run as a whole; the measurements of such a run are not compared.

    Raises:
        ValueError: if the runs asked different questions, or a file is not a result.
    """
    tally = _Tally()
    names = [name for name, _ in runs]
    incidents = incidents or {}
    for row in _aligned([_comparable(path, incidents.get(name)) for name, path in runs]):
        _add(tally, names, row, answers=answers)
    return Agreement(
        sdks=names,
        questions=tally.questions,
        compared=tally.compared,
        rankings_equal=tally.rankings_equal,
        answers_equal=tally.answers_equal if answers else None,
        largest_score_difference=tally.largest,
        differences=tally.differences,
    )


def _comparable(path: Path, incident: Incident | None) -> Iterator[QuestionResult]:
    questions = read_questions(path)
    return questions if incident is None else (result.voided(incident) for result in questions)


def _aligned(rows: Sequence[Iterator[QuestionResult]]) -> Iterator[tuple[QuestionResult, ...]]:
    for row in zip(*rows, strict=True):
        if len({result.id for result in row}) != 1:
            raise ValueError(
                f"the runs asked different questions: {', '.join(result.id for result in row)}"
            )
        yield row


def _add(
    tally: _Tally, names: Sequence[str], row: Sequence[QuestionResult], *, answers: bool
) -> None:
    first = row[0]
    if not first.verdict.expected:
        return
    tally.questions += 1
    if not all(result.verdict.measured for result in row):
        return
    tally.compared += 1
    details = [_ranking_detail(tally, first, result) for result in row[1:]]
    for name, detail in zip(names[1:], details, strict=True):
        if detail:
            tally.add_difference(first.id, name, detail)
    tally.rankings_equal += not any(details)
    if answers:
        details = [_answer_detail(first, result) for result in row[1:]]
        for name, detail in zip(names[1:], details, strict=True):
            if detail:
                tally.add_difference(first.id, name, detail)
        tally.answers_equal += not any(details)


def _ranking_detail(tally: _Tally, one: QuestionResult, other: QuestionResult) -> str:
    """How two rankings diverge; empty if they are equal."""
    ours, theirs = keys(one, other)
    if ours == theirs:
        gap, _ = largest_gap(list(zip(one.ranking, other.ranking, strict=True)))
        tally.largest = max(tally.largest, gap)
    divergence = ranking_difference(one, other)
    return divergence.detail if divergence else ""


def _answer_detail(one: QuestionResult, other: QuestionResult) -> str:
    """How two answers diverge, including their citations; empty if they are equal."""
    divergence = answer_difference(one, other)
    return divergence.detail if divergence else ""
