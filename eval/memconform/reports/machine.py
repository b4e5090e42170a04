"""Results as JSON for other programs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from memconform.daemons.availability import SkippedSdk
from memconform.errors import ExitCode
from memconform.parity.agreement import Agreement
from memconform.parity.records import ParityReport
from memconform.records import Record, SkipRecord
from memconform.runs.results import RunResult, RunSummary
from memconform.storage.writing import Masked, Sink, json_bytes

REPORT_SCHEMA: Literal["memconform/run-report@1"] = "memconform/run-report@1"


class RunReport(Record):
    """What `run --json` writes: the results of one command."""

    schema_version: Literal["memconform/run-report@1"] = REPORT_SCHEMA
    exit_code: int
    skipped: list[SkipRecord] = Field(default_factory=list)
    agreement: Agreement | None = None
    """Between the runs, where there are several that ended."""
    parity: ParityReport | None = None
    """The same pair by pair, with statistics."""
    runs: list[RunResult]


def banner(summary: RunSummary) -> str:
    """`<sdk>: <passed>/<total> pass_rate=<rate> mean_score=<score>`, ` not_measured=<n>` if any.

    Rates that are unknown are `none`. A run that an incident ended has none:
    `<sdk>: not measured: <code>; <n> of <total> questions were`.
    """
    measured = sum(count for verdict, count in summary.counts.items() if verdict.measured)
    if summary.incident is not None:
        return (
            f"{summary.sdk}: not measured: {summary.incident.code};"
            f" {measured} of {summary.total} questions were"
        )
    rates = (summary.pass_rate, summary.mean_score)
    pass_rate, mean_score = ("none" if rate is None else f"{rate:.4f}" for rate in rates)
    counts = f"{summary.passed}/{summary.total}"
    missing = f" not_measured={summary.total - measured}" if measured < summary.total else ""
    return f"{summary.sdk}: {counts} pass_rate={pass_rate} mean_score={mean_score}{missing}"


def agreement_banner(agreement: Agreement) -> str:
    """`<sdk>, <sdk>: rankings equal <n>/<compared>[, answers equal <n>/<compared>]`.

    What was not measured on every SDK is no difference, and named apart.
    """
    compared = agreement.compared
    counts = [f"rankings equal {agreement.rankings_equal}/{compared}"]
    if agreement.answers_equal is not None:
        counts.append(f"answers equal {agreement.answers_equal}/{compared}")
    if compared == 0:
        counts = ["nothing to compare"]
    if compared < agreement.questions:
        counts.append(f"{agreement.questions - compared} of {agreement.questions} not measured")
    return f"{', '.join(agreement.sdks)}: {', '.join(counts)}"


def write_run_report(
    target: Sink,
    results: Sequence[Path],
    exit_code: ExitCode,
    *,
    absences: Sequence[SkippedSdk] = (),
    agreement: Agreement | None = None,
    parity: ParityReport | None = None,
) -> None:
    """The report of a command: its exit code, and the result of each of its runs as it is."""
    skipped = [SkipRecord(sdk=a.sdk, reason=f"{a.error.code}: {a.error.message}") for a in absences]
    report = RunReport(
        exit_code=exit_code, skipped=skipped, agreement=agreement, parity=parity, runs=[]
    )
    head = json_bytes(report.model_dump(mode="json", exclude={"runs"})).removesuffix(b"}")
    target.write_masked(Masked(head + b', "runs": ['))
    for index, path in enumerate(results):
        target.write_masked(Masked(b",\n" if index else b"\n"))
        with path.open("rb") as result:
            for line in result:
                target.write_masked(Masked(line))
    target.write_masked(Masked(b"]}\n"))
