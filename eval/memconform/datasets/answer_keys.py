"""The questions of a benchmark with their reference answers, without its haystacks."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from memconform.datasets.benchmarks import open_benchmark
from memconform.datasets.files import PieceReader, unfit
from memconform.datasets.locomo import read_locomo_questions
from memconform.datasets.question import Question

Suite = Literal["longmemeval", "locomo"]
"""A benchmark with published scores of answers."""


@dataclass(frozen=True, slots=True)
class AnswerKey:
    """Every question of a benchmark, in its order."""

    suite: Suite
    path: Path
    sha256: str
    """Digest of the decompressed file."""
    questions: dict[str, Question]
    clusters: dict[str, str]
    """The conversation of each question, for questions that share one."""

    @property
    def categories(self) -> frozenset[str]:
        """The categories of all questions."""
        return frozenset(question.category for question in self.questions.values())


def read_answer_key(path: Path, suite: Suite) -> AnswerKey:
    """Read all questions, also those that no retrieval metric can score.

    Raises:
        UsageError: `dataset_missing`, `wrong_format`, `dataset_invalid`, `dataset_unreadable`.
    """
    benchmark = open_benchmark(path, suite, {})
    if suite == "longmemeval":
        questions = {query.id: query for haystack in benchmark for query in haystack.queries}
        return AnswerKey(suite, path, benchmark.sha256, questions, {})
    questions, clusters = {}, {}
    with PieceReader(path) as source:
        for conversation, question in _unique(path, read_locomo_questions(source)):
            questions[question.id] = question
            clusters[question.id] = conversation
        return AnswerKey(suite, path, source.sha256, questions, clusters)


def _unique(
    path: Path, questions: Iterator[tuple[str, Question]]
) -> Iterator[tuple[str, Question]]:
    ids = set()
    for conversation, question in questions:
        if question.id in ids:
            raise unfit(path, f"two conversations have the id {conversation}")
        ids.add(question.id)
        yield conversation, question
