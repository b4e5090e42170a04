"""What the results of checks are called in formats of tests, which know four statuses."""

from enum import StrEnum

from memconform.conformance.results import Result


class OutcomeStatus(StrEnum):
    """The kinds of results that formats of tests tell apart."""

    PASSED = "passed"
    FAILED = "failed"
    """Measured, and wrong."""
    ERROR = "error"
    """Not measured, which is no failure of what was tested."""
    SKIPPED = "skipped"
    """Not applicable, or known to fail."""


CHECK_STATUS = {
    Result.PASS: OutcomeStatus.PASSED,
    Result.WARN: OutcomeStatus.PASSED,
    Result.FAIL: OutcomeStatus.FAILED,
    Result.XPASS: OutcomeStatus.FAILED,
    Result.XFAIL: OutcomeStatus.SKIPPED,
    Result.NOT_APPLICABLE: OutcomeStatus.SKIPPED,
    Result.UNTESTABLE: OutcomeStatus.ERROR,
    Result.ERROR: OutcomeStatus.ERROR,
}
"""By result; docs/CONFORMANCE.md shows the same table."""
