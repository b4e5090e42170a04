"""Reads the results of runs."""

from collections.abc import Iterator
from pathlib import Path

from memconform.runs.results import QuestionResult, RunSummary
from memconform.storage.result_file import read_head, read_lines


def read_questions(result: Path) -> Iterator[QuestionResult]:
    """Read the questions of a result, one in memory at a time.

    Raises:
        ValueError: if the file is incomplete or a question is invalid.
    """
    return map(QuestionResult.model_validate_json, read_lines(result))


def read_summary(result: Path) -> RunSummary:
    """Read a result without its questions; raises ValueError if it is invalid."""
    return RunSummary.model_validate_json(read_head(result))
