"""Results as CTRF, the Common Test Report Format (ctrf.io), version 0.0.0 of its schema."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from memconform import __version__
from memconform.records import Record
from memconform.reports.check_status import OutcomeStatus
from memconform.reports.overview.outcomes import Outcome
from memconform.storage.sink import Sink

Status = Literal["passed", "failed", "skipped", "pending", "other"]

_STATUSES: dict[OutcomeStatus, Status] = {
    OutcomeStatus.PASSED: "passed",
    OutcomeStatus.FAILED: "failed",
    OutcomeStatus.SKIPPED: "skipped",
    # `failed` would turn what was not measured into a failure of the daemon.
    OutcomeStatus.ERROR: "other",
}


class _CtrfRecord(Record):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class CtrfTest(_CtrfRecord):
    """One test; `raw_status` is the status in memconform's words."""

    name: str = Field(min_length=1)
    status: Status
    duration: int
    """In ms."""
    suite: list[str]
    raw_status: str
    message: str | None = None
    trace: str | None = None
    tags: list[str] | None = None


class CtrfSummary(_CtrfRecord):
    """Counts by status; times in ms since 1970."""

    tests: int
    passed: int
    failed: int
    skipped: int
    pending: int
    other: int
    start: int
    stop: int


class CtrfTool(_CtrfRecord):
    """The program that tested."""

    name: str
    version: str


class CtrfResults(_CtrfRecord):
    """The results."""

    tool: CtrfTool
    summary: CtrfSummary
    tests: list[CtrfTest]


class CtrfReport(_CtrfRecord):
    """The document that `report --format ctrf` writes."""

    report_format: Literal["CTRF"] = Field(default="CTRF", alias="reportFormat")
    spec_version: Literal["0.0.0"] = Field(default="0.0.0", alias="specVersion")
    generated_by: str
    results: CtrfResults


def ctrf_report(
    outcomes: Sequence[Outcome], started_at: datetime, finished_at: datetime
) -> CtrfReport:
    """Build the report; what was not measured has the status `other`."""
    tests = [_test(outcome) for outcome in outcomes]
    counts = {status: sum(test.status == status for test in tests) for status in _STATUSES.values()}
    return CtrfReport(
        generated_by=f"memconform {__version__}",
        results=CtrfResults(
            tool=CtrfTool(name="memconform", version=__version__),
            summary=CtrfSummary(
                tests=len(tests),
                passed=counts["passed"],
                failed=counts["failed"],
                skipped=counts["skipped"],
                pending=0,
                other=counts["other"],
                start=int(started_at.timestamp() * 1_000),
                stop=int(finished_at.timestamp() * 1_000),
            ),
            tests=tests,
        ),
    )


def write_ctrf(target: Sink, report: CtrfReport) -> None:
    """Write a report as JSON."""
    target.write_json(report.model_dump(mode="json", by_alias=True, exclude_none=True))


def _test(outcome: Outcome) -> CtrfTest:
    return CtrfTest(
        name=outcome.id or "(empty id)",
        status=_STATUSES[outcome.status],
        duration=round(outcome.ms or 0),
        suite=[outcome.sdk, outcome.suite],
        raw_status=outcome.detail,
        message=outcome.message or "; ".join(each.text() for each in outcome.figures) or None,
        trace=outcome.trace or None,
        tags=list(outcome.tags) or None,
    )
