"""The statuses in which a question can end."""

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
