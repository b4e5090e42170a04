"""Question by question: the same documents in the same order, the same scores, the same answers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from memconform.errors import ExitCode
from memconform.parity.ladder import (
    answer_difference,
    keys,
    largest_gap,
    ranking_difference,
)
from memconform.records import Incident, Record
from memconform.runs.reading import read_questions
from memconform.runs.results import QuestionResult

_SHOWN = 5


class RankingDifference(Record):
    """One question on which an SDK differs from the first one."""

    question: str
    sdk: str
    detail: str


class Agreement(Record):
    """What several SDKs' runs of one selection have in common.

    It says of these questions what it says, and nothing of others.
    """

    sdks: list[str]
    questions: int
    compared: int
    """Questions that every SDK answered; the rest is no evidence in either direction."""
    rankings_equal: int
    answers_equal: int | None
    """None for searches, which have no answers."""
    largest_score_difference: float
    """Over the rankings whose documents are the same in the same order."""
    differences: list[RankingDifference]
    """The first few."""

    @property
    def complete(self) -> bool:
        """Whether every question was compared, and all is equal."""
        return self.exit_code is ExitCode.OK

    @property
    def exit_code(self) -> ExitCode:
        """What it comes to where agreement is demanded."""
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

    def note(self, question: str, sdk: str, detail: str) -> None:
        if len(self.differences) < _SHOWN:
            self.differences.append(RankingDifference(question=question, sdk=sdk, detail=detail))


def compare_rankings(
    runs: Sequence[tuple[str, Path]],
    *,
    answers: bool,
    incidents: Mapping[str, Incident | None] | None = None,
) -> Agreement:
    """Hold every run to the first; `runs` are SDKs with their result files, same questions each.

    What a run measured that an incident ended is compared with nothing; `incidents` are by SDK.

    Raises:
        ValueError: where the runs put different questions.
    """
    tally = _Tally()
    names = [name for name, _ in runs]
    ended = incidents or {}
    for row in _aligned([_comparable(path, ended.get(name)) for name, path in runs]):
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
    return questions if incident is None else (each.voided(incident) for each in questions)


def _aligned(rows: Sequence[Iterator[QuestionResult]]) -> Iterator[tuple[QuestionResult, ...]]:
    for row in zip(*rows, strict=True):
        if len({result.id for result in row}) != 1:
            raise ValueError(f"different questions: {', '.join(result.id for result in row)}")
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
    rankings = [_ranking_difference(tally, first, result) for result in row[1:]]
    for name, difference in zip(names[1:], rankings, strict=True):
        if difference:
            tally.note(first.id, name, difference)
    tally.rankings_equal += not any(rankings)
    if answers:
        others = [_answer_difference(first, result) for result in row[1:]]
        for name, difference in zip(names[1:], others, strict=True):
            if difference:
                tally.note(first.id, name, difference)
        tally.answers_equal += not any(others)


def _ranking_difference(tally: _Tally, one: QuestionResult, other: QuestionResult) -> str:
    """How two rankings differ, as the ladder of divergence has it; empty where they do not."""
    ours, theirs = keys(one, other)
    if ours == theirs:
        gap, _ = largest_gap(list(zip(one.ranking, other.ranking, strict=True)))
        tally.largest = max(tally.largest, gap)
    parting = ranking_difference(one, other)
    return parting.detail if parting else ""


def _answer_difference(one: QuestionResult, other: QuestionResult) -> str:
    """How two answers differ, their citations included; empty where they do not."""
    parting = answer_difference(one, other)
    return parting.detail if parting else ""
