"""How a question ends."""

from enum import StrEnum


class QuestionStatus(StrEnum):
    """Measured, not measured, or not asked of this scenario: the three never mix."""

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
        return self in (QuestionStatus.CORRECT, QuestionStatus.INCORRECT, QuestionStatus.ABSTAINED)

    @property
    def expected(self) -> bool:
        """Whether the question belongs to the total."""
        return self is not QuestionStatus.NOT_APPLICABLE


PASS_THRESHOLD = 0.5
"""A score from which a question counts as passed."""
