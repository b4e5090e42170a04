"""The statuses in which a question can end."""

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum


class QuestionStatus(StrEnum):
    """How a question ended: measured, not measured, or not applicable to the scenario."""

    CORRECT = "correct"
    INCORRECT = "incorrect"
    ABSTAINED = "abstained"
    DAEMON_ERROR = "daemon_error"
    PROTOCOL_ERROR = "protocol_error"
    JUDGE_ERROR = "judge_error"
    TIMEOUT = "timeout"
    NOT_RUN = "not_run"
    NOT_APPLICABLE = "not_applicable"

    @property
    def measured(self) -> bool:
        """Whether the question has a score."""
        return self in (QuestionStatus.CORRECT, QuestionStatus.INCORRECT, QuestionStatus.ABSTAINED)

    @property
    def expected(self) -> bool:
        """Whether the question counts towards the total."""
        return self is not QuestionStatus.NOT_APPLICABLE


PASS_THRESHOLD = 0.5
"""The lowest score at which a question passes."""


def failure_lines(failures: Iterable[tuple[str, str, str]]) -> list[str]:
    """One line for each kind of failure, with its count and first occurrence.

    `failures` are each a kind, such as an error code, the id of the question, and a message.
    """
    found = list(failures)
    first = {kind: f"{question}: {message}" for kind, question, message in reversed(found)}
    counts = Counter(kind for kind, _, _ in found)
    return [f"{count} of {kind}, the first {first[kind]}" for kind, count in counts.most_common()]


def judge_failure(question: str, reason: str) -> tuple[str, str, str]:
    """A failure for `failure_lines`, from a judge's reason of the form `kind: message`."""
    kind, _, message = reason.partition(":")
    return kind, question, message.strip()
