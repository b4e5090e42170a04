"""Results of runs, read again."""

from collections.abc import Iterator
from pathlib import Path

from memconform.runs.results import RESULT_SCHEMA, QuestionResult, RunSummary
from memconform.storage.result_file import read_head, read_lines, schema_of


def read_questions(result: Path) -> Iterator[QuestionResult]:
    """The questions of a result, one in memory at a time.

    Raises:
        ValueError: where the file ends before its questions do, or one is no question.
    """
    return map(QuestionResult.model_validate_json, read_lines(result))


def read_summary(result: Path) -> RunSummary:
    """A result without its questions; raises ValueError for what is none."""
    return RunSummary.model_validate_json(read_head(result))


def is_result(path: Path) -> bool:
    """Whether a file calls itself the result of a run; raises OSError where it cannot be read."""
    try:
        return schema_of(path) == RESULT_SCHEMA
    except ValueError:
        return False
