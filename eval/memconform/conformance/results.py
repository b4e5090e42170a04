"""Machine-readable results of cases, and the exit codes that follow from them."""

from collections import Counter
from collections.abc import Callable, Container, Iterable
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field

from memconform.conformance.case import Level
from memconform.datasets.sharding import ShardRecord
from memconform.errors import ExitCode, gravest
from memconform.records import Record, SkipRecord
from memconform.storage.body_files import FOLDER as BODIES
from memconform.storage.body_files import from_here
from memconform.storage.provenance import HostOrigin, Origin, PartOrigin, ReportHeader


class Result(StrEnum):
    """The result of a check or a case."""

    PASS = "pass"  # noqa: S105 - a verdict
    FAIL = "fail"
    WARN = "warn"
    XFAIL = "xfail"
    XPASS = "xpass"
    UNTESTABLE = "untestable"
    NOT_APPLICABLE = "not_applicable"
    ERROR = "error"


IMPLICIT = ("wire", "alive")
"""Slots of the checks that every case has, whatever it is about."""

RED = (Result.FAIL, Result.XPASS, Result.UNTESTABLE, Result.ERROR)
"""Results that fail a run."""

FAILING = (Result.FAIL, Result.XPASS)
"""Results that were measured and fail a run."""

_EXITS = {
    Result.FAIL: ExitCode.FAILED,
    Result.XPASS: ExitCode.FAILED,
    # Nothing was measured, so this says nothing about conformance.
    Result.UNTESTABLE: ExitCode.DAEMON,
    Result.ERROR: ExitCode.INTERNAL,
}


class Cause(Record):
    """Why a check did not pass: one of its causes, and where it shows."""

    cause: str
    """What is wrong, without values that differ between cases: the same for the same defect."""
    got: str = ""
    """The fault with its values; empty if the check's `got` has it."""
    step: str = ""
    """The step that shows it; empty if it is the check's `step`."""
    curl: str = ""
    """A command that repeats that step; empty if it is the check's `curl`."""
    known: str = ""
    """The reason given by the matching entry of known failures."""


class Check(Record):
    """The result of one check: an expectation of a case, or `wire` or `alive`."""

    id: str
    """`case#slot`, or `case[labels]#slot` for a variant of a case."""
    result: Result
    level: Level
    rules: list[str]
    expected: str = ""
    got: list[str] = Field(default_factory=list)
    """What differs, and where; or why nothing was checked."""
    step: str = ""
    """The step whose result failed, for example its request line."""
    curl: str = ""
    """A shell command that repeats the step's request, to be run in the run's folder; empty if the
    check passes."""
    known: str = ""
    """The reason given by the matching entry of known failures."""
    causes: list[Cause] = Field(default_factory=list)
    """Why it did not pass; empty in reports of versions before there were causes."""


def exit_code_of(checks: Iterable[Check]) -> ExitCode:
    """Return the exit code for these checks; only a measured failure is `FAILED`."""
    return gravest(_EXITS.get(check.result, ExitCode.OK) for check in checks)


class CaseResult(Record):
    """The result of one case, or one variant of it, on one SDK."""

    case: str
    title: str
    took_ms: float = 0.0
    checks: list[Check]

    @property
    def result(self) -> Result:
        """The worst result of its checks."""
        order = (
            Result.ERROR, Result.FAIL, Result.XPASS, Result.UNTESTABLE, Result.WARN, Result.XFAIL,
            Result.PASS, Result.NOT_APPLICABLE,
        )  # fmt: skip
        results = {check.result for check in self.checks}
        return next(result for result in order if result in results)

    def with_commands(self, change: Callable[[str], str]) -> Self:
        """The result with other commands in its checks and their causes."""
        if not any(check.curl or check.causes for check in self.checks):
            return self
        checks = [
            check.model_copy(
                update={
                    "curl": change(check.curl),
                    "causes": [
                        cause.model_copy(update={"curl": change(cause.curl)})
                        for cause in check.causes
                    ],
                }
            )
            for check in self.checks
        ]
        return self.model_copy(update={"checks": checks})


def has_result(case: CaseResult, results: Container[Result]) -> bool:
    """Whether a check of a case has one of these results."""
    return any(check.result in results for check in case.checks)


class SdkResult(Record):
    """Results of all cases on one SDK; `problems` are failures that belong to no case."""

    sdk: str
    profiles: list[str]
    modes: list[str]
    cases: list[CaseResult]
    problems: list[str] = Field(default_factory=list)
    repeated: list[str] = Field(default_factory=list)
    """Case variants that measured nothing because of a timeout, and were run again, alone."""
    took_s: float = 0.0
    stale_known: list[str] = Field(default_factory=list)
    """Known causes of failures that no longer occur."""
    readers: list[str] | None = None
    """Readers that the SDK claims; None if it claims all."""
    unclaimed_reader_cases: list[str] = Field(default_factory=list)
    """Case variants that were skipped because they need a reader that it does not claim."""
    embedders: list[str] | None = None
    """Embedders that the SDK claims; None if it claims all."""
    unclaimed_embedder_cases: list[str] = Field(default_factory=list)
    """Case variants that were skipped because they need an embedder that it does not claim."""
    driver: str = ""
    """What the driver of a client calls itself; empty of a daemon."""

    def counts(self) -> dict[Result, int]:
        """Count checks by result; results that did not occur count 0."""
        counter = Counter(check.result for case in self.cases for check in case.checks)
        return {result: counter[result] for result in Result}

    def applicable(self) -> int:
        """Count the checks that apply to the SDK, which is what every report counts `of`."""
        return sum(n for result, n in self.counts().items() if result is not Result.NOT_APPLICABLE)

    def from_here(self, folder: Path) -> Self:
        """The result with the commands of a run's folder for the current folder."""

        def change(command: str) -> str:
            return from_here(command, folder)

        cases = [case.with_commands(change) for case in self.cases]
        return self.model_copy(update={"cases": cases})

    @property
    def exit_code(self) -> ExitCode:
        """The gravest exit code of its cases and problems."""
        counts = self.counts()
        codes = [exit_code_of(case.checks) for case in self.cases]
        if not counts[Result.PASS]:
            # A daemon that passed no check at all is not conformant.
            codes.append(ExitCode.NOTHING_SELECTED)
        if self.stale_known:
            codes.append(ExitCode.FAILED)
        return gravest([*codes, ExitCode.DAEMON if self.problems else ExitCode.OK])


class ShardedCases(Record):
    """What the report of a shard must say, so that those of all shards make a whole one."""

    shard: ShardRecord
    cases: list[str]
    """Ids of its case variants, in their order."""
    all_sha256: str
    """Digest of the variants of all shards, with what they send and expect."""
    builds: dict[str, str | None]
    """The digest of each SDK's build; null of a daemon that memconform did not start."""
    origin: HostOrigin
    """The machine that had the shard."""
    selection: str
    """Which cases all shards have, in words; empty for all shipped cases."""
    complete: bool
    """Whether all shards together have every case, so that known failures can be stale."""
    known: list[dict[str, Any]]
    """The entries of known failures."""


CONFORM_SCHEMA: Literal["memconform/conform-report@1"] = "memconform/conform-report@1"


class ConformReport(Origin, ReportHeader):
    """The report that `conform --json` writes, also stored in the run's folder."""

    schema_version: Literal["memconform/conform-report@1"] = CONFORM_SCHEMA
    run: str
    suite: Literal["conform", "client"] = "conform"
    """The verb whose cases these are: those of daemons, or of clients."""
    finished_at: datetime
    contract: str
    sdk_references: dict[str, str]
    """The value of `--sdk`, by the SDK's name."""
    skipped: list[SkipRecord] = Field(default_factory=list)
    variables: dict[str, dict[str, str]] = Field(default_factory=dict)
    """What the shell and --env set for the daemons, by SDK, with secrets masked."""
    unprofiled_not_run: list[str] = Field(default_factory=list)
    """Cases that belong to no profile and were not run because --profile selects others."""
    sharded: ShardedCases | None = None
    """Null of a report with all selected cases."""
    parts: list[PartOrigin] = Field(default_factory=list)
    """What a merged report was made of."""
    sdks: list[SdkResult]

    def from_here(self, folder: Path) -> Self:
        """The report with the commands of a run's folder for the current folder."""
        if not (folder / BODIES).is_dir():
            return self
        return self.model_copy(update={"sdks": [sdk.from_here(folder) for sdk in self.sdks]})


def verdict(
    sdks: Iterable[SdkResult], others: Iterable[ExitCode] = (), shard: ShardRecord | None = None
) -> ExitCode:
    """Return the exit code of a run; banner and exit code both follow from it.

    None of the cases of a shard may apply; whether any of all passes is known when it is merged.
    """
    code = gravest([*(sdk.exit_code for sdk in sdks), *others])
    return ExitCode.OK if shard is not None and code is ExitCode.NOTHING_SELECTED else code
