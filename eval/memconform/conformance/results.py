"""What a case came to, as records that a machine can read."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Literal

from pydantic import Field

from memconform.conformance.case import Level
from memconform.errors import ExitCode, gravest
from memconform.records import Record, SkipRecord
from memconform.storage.provenance import Origin, ReportHeader


class Result(StrEnum):
    PASS = "pass"  # noqa: S105 - a verdict
    FAIL = "fail"
    WARN = "warn"
    XFAIL = "xfail"
    XPASS = "xpass"
    UNTESTABLE = "untestable"
    NOT_APPLICABLE = "not_applicable"
    ERROR = "error"


IMPLICIT = ("wire", "alive")
"""Slots of the checks that every case has."""

RED = (Result.FAIL, Result.XPASS, Result.UNTESTABLE, Result.ERROR)
"""Results that fail a run."""

_EXITS = {
    Result.FAIL: ExitCode.FAILED,
    Result.XPASS: ExitCode.FAILED,
    # Not measured, which is no verdict on the daemon.
    Result.UNTESTABLE: ExitCode.DAEMON,
    Result.ERROR: ExitCode.INTERNAL,
}


class Check(Record):
    """One expectation of a case, or one that every case has: `wire`, `alive`."""

    id: str
    """`case#slot`, with the matrix's combination in brackets behind the case."""
    result: Result
    level: Level
    rules: list[str]
    expected: str = ""
    got: list[str] = Field(default_factory=list)
    """What is otherwise, and where; the reason where it was not checked."""
    step: str = ""
    """The request that brought it."""
    curl: str = ""
    known: str = ""
    """The reason of the known-failing entry that it falls under."""


def exit_of(checks: Iterable[Check]) -> ExitCode:
    """What these checks come to: only a measured failure is one."""
    return gravest(_EXITS.get(check.result, ExitCode.OK) for check in checks)


class CaseResult(Record):
    case: str
    title: str
    took_ms: float = 0.0
    checks: list[Check]

    @property
    def result(self) -> Result:
        """The worst of its checks."""
        order = (
            Result.ERROR, Result.FAIL, Result.XPASS, Result.UNTESTABLE, Result.WARN, Result.XFAIL,
            Result.PASS, Result.NOT_APPLICABLE,
        )  # fmt: skip
        results = {check.result for check in self.checks}
        return next(result for result in order if result in results)


class SdkResult(Record):
    """All cases of one SDK; `problems` are what no case can be blamed for."""

    sdk: str
    profiles: list[str]
    modes: list[str]
    cases: list[CaseResult]
    problems: list[str] = Field(default_factory=list)
    took_s: float = 0.0

    def counts(self) -> dict[Result, int]:
        """Checks by result; what is zero is there too."""
        seen = Counter(check.result for case in self.cases for check in case.checks)
        return {result: seen[result] for result in Result}

    @property
    def exit_code(self) -> ExitCode:
        counts = self.counts()
        found = [exit_of(case.checks) for case in self.cases]
        if not counts[Result.PASS]:
            # A daemon of which nothing was asked, or nothing was right, is not conformant.
            found.append(ExitCode.NOTHING_SELECTED)
        return gravest([*found, ExitCode.DAEMON if self.problems else ExitCode.OK])


CONFORM_SCHEMA: Literal["memconform/conform-report@1"] = "memconform/conform-report@1"


class ConformReport(Origin, ReportHeader):
    """What `conform --json` writes, and what a run's folder keeps."""

    schema_version: Literal["memconform/conform-report@1"] = CONFORM_SCHEMA
    run: str
    finished_at: datetime
    contract: str
    sdk_references: dict[str, str]
    """What `--sdk` was given, by the SDK's name."""
    skipped: list[SkipRecord] = Field(default_factory=list)
    sdks: list[SdkResult]


def verdict(sdks: Iterable[SdkResult], others: Iterable[ExitCode] = ()) -> ExitCode:
    """What a command ends with: banner and exit code both come from here."""
    return gravest([*(sdk.exit_code for sdk in sdks), *others])
