"""Rows of answers to WMB-100K: what a score is computed from, and what is unusual about them."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from memconform.datasets.question import Question
from memconform.datasets.wmb import is_document
from memconform.datasets.wmb_names import FALSE_MEMORY


@dataclass(frozen=True, slots=True)
class ScoredRow:
    """A row of the answers, without its texts."""

    question: str
    returned_nothing: bool
    latency_ms: float | None
    whole: str
    """Digest of the memories."""
    cut: str
    """Digest of what the script shows of them."""
    error: str | None = None
    """The beginning of the error message that the row has in place of an answer."""


@dataclass(frozen=True, slots=True)
class ScoredAnswers:
    """Everything that a score is computed from."""

    questions: Mapping[str, Question]
    """All of the benchmark, by id."""
    rows: Sequence[ScoredRow]
    """In the order of the file, with unknown and repeated questions."""
    verdicts: Mapping[tuple[str, str], bool] = field(default_factory=dict)
    """Whether memories are right, by question and their digest; failed judgements are absent."""
    lost: Collection[str] = ()
    """Questions without a row because the harness or the system under test failed."""
    not_asked: Collection[str] = ()
    """Questions that were not put to the system."""

    def without(self, omitted: Collection[str]) -> "ScoredAnswers":
        """The same of the other questions alone; rows of unknown questions stay."""
        return replace(
            self,
            questions={k: each for k, each in self.questions.items() if k not in omitted},
            rows=[row for row in self.rows if row.question not in omitted],
            lost={*self.lost}.difference(omitted),
            not_asked={*self.not_asked}.difference(omitted),
        )

    @property
    def counted(self) -> dict[str, ScoredRow]:
        """The row of each question that counts by the README's rules: its last one.

        The benchmark's adapter template answers S3 twice, the second time from both categories.
        """
        return {row.question: row for row in self.rows if row.question in self.questions}


@dataclass(frozen=True, slots=True)
class RowFaults:
    """What is unusual about the rows of a file; it is reported, and counts as the profiles say."""

    missing: list[str]
    """Questions without a row, neither lost nor left out on purpose."""
    unknown: list[str]
    """Rows about no question of the benchmark."""
    repeated: list[str]
    """Questions that occur again with the same memories."""
    contradicted: list[str]
    """Questions that occur again with other memories."""
    reordered: bool
    """Whether the rows of a part are in another order than its questions."""
    empty: list[str]
    """Categories, of each part, of whose many answers none has a memory: so answers an index that
    lost them."""


_MANY: Final = 10
"""Answers without a memory that are not taken for chance."""


def _empty_categories(answers: ScoredAnswers) -> list[str]:
    counts: dict[str, list[bool]] = {}
    for name, row in answers.counted.items():
        if answers.questions[name].category != FALSE_MEMORY and row.error is None:
            category = name.partition(".")[0] + (" (documents)" if is_document(name) else "")
            counts.setdefault(category, []).append(row.returned_nothing)
    return [name for name, empty in counts.items() if len(empty) >= _MANY and all(empty)]


def row_faults(answers: ScoredAnswers) -> RowFaults:
    """Find what is unusual about the rows."""
    first: dict[str, ScoredRow] = {}
    repeated: dict[str, None] = {}
    contradicted: dict[str, None] = {}
    for row in answers.rows:
        earlier = first.setdefault(row.question, row)
        if earlier is not row:
            same = (earlier.whole, earlier.returned_nothing) == (row.whole, row.returned_nothing)
            (repeated if same else contradicted)[row.question] = None
    known = [name for name in first if name in answers.questions]
    excused = {*answers.lost, *answers.not_asked}
    return RowFaults(
        missing=[name for name in answers.questions if name not in first and name not in excused],
        unknown=[name for name in first if name not in answers.questions],
        repeated=[name for name in repeated if name not in contradicted],
        contradicted=list(contradicted),
        reordered=_is_reordered(known, list(answers.questions), is_document)
        or _is_reordered(known, list(answers.questions), lambda name: not is_document(name)),
        empty=_empty_categories(answers),
    )


def _is_reordered(
    names: Iterable[str], expected: Sequence[str], of_part: Callable[[str], bool]
) -> bool:
    position = {name: number for number, name in enumerate(expected)}
    positions = [position[name] for name in names if of_part(name)]
    return positions != sorted(positions)
