"""The common model of questions and question sets, independent of their format."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

TextKind = Literal["answer", "retrieval"]
"""Which text of a daemon's response is scored: its reader's answer, or what it retrieved."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its expected answer and evidence.

    Datasets differ in what they provide: expected strings for the exact scorer, answers or a rubric
    for a judge, gold for retrieval metrics.
    """

    id: str
    """Unique in its dataset."""
    question: str
    category: str = ""
    """The category by which scores are broken down; for a question set, the first tag."""
    gold: tuple[str, ...] = ()
    """Ids of items, or paths of documents, that contain the answer; an id without an item is an
    unavoidable miss."""
    answers: tuple[str, ...] = ()
    """Reference answers, each of which is correct."""
    expected_substrings: tuple[str, ...] = ()
    """Strings of which a correct answer contains any or all (`match`)."""
    match: Literal["any", "all"] = "any"
    word: bool = False
    """Whether expected strings match whole words only: "Au" is not in "August"."""
    case_sensitive: bool = False
    rubric: str | None = None
    """Instructions for a judge, if no single text is the answer."""
    question_date: str | None = None
    """The day on which it is asked, as the dataset writes it."""
    abstain: bool = False
    """Whether the correct answer is that the corpus does not contain one."""
    abstain_marker: str | None = None
    """An answer equal to this one counts as abstaining, besides the built-in phrases."""
    tags: tuple[str, ...] = ()
    cluster: str | None = None
    """What it shares with questions that are not independent of it, such as the id of their
    conversation; None if it is independent of all others."""

    @property
    def reference_answer(self) -> str | None:
        """The first reference answer, or None."""
        return self.answers[0] if self.answers else None


@dataclass(frozen=True, slots=True)
class Dataset:
    """A validated question set.

    Iterating over a large one reads the file again, so that only one row is in memory.
    """

    name: str
    path: Path
    sha256: str
    size: int
    read: Callable[[Path], Iterator[Question]]

    def __iter__(self) -> Iterator[Question]:
        return self.read(self.path)
