"""The one model of a question, whatever dataset it is of."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, what answers it, and where that is to be found.

    A dataset gives what it has: expected strings for the exact scorer, answers or a rubric for a
    judge, gold for metrics of retrieval.
    """

    id: str
    """Unique in its dataset."""
    question: str
    category: str = ""
    """By which scores are broken down; of a question set the first tag."""
    gold: tuple[str, ...] = ()
    """Ids of items, or paths of documents, that hold the answer; one that no item has is a miss
    that cannot be avoided."""
    answers: tuple[str, ...] = ()
    """Reference answers, each of which is right."""
    expected_substrings: tuple[str, ...] = ()
    """Strings of which an answer that is right holds one, or each (`match`)."""
    match: Literal["any", "all"] = "any"
    word: bool = False
    """Whether an expected string must stand as whole words: "Au" is not in "August"."""
    case_sensitive: bool = False
    rubric: str | None = None
    """What a judge is told, where no single text is the answer."""
    question_date: str | None = None
    """The day on which it is asked, as the dataset writes it."""
    abstain: bool = False
    """Whether the right answer is that the corpus holds none."""
    abstain_marker: str | None = None
    """An answer that equals it abstains, besides the phrases that always do."""
    tags: tuple[str, ...] = ()

    @property
    def reference_answer(self) -> str | None:
        return self.answers[0] if self.answers else None


@dataclass(frozen=True, slots=True)
class Dataset:
    """A question set that has been read through once and found valid.

    Iterating reads a large file anew, so that no more than a row is held.
    """

    name: str
    path: Path
    sha256: str
    size: int
    read: Callable[[Path], Iterator[Question]]

    def __iter__(self) -> Iterator[Question]:
        return self.read(self.path)
