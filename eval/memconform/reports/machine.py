"""Results for other programs: the JSON report of a command, and a line on its agreement."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from memconform.daemons.availability import SkippedSdk
from memconform.errors import ExitCode
from memconform.records import Record, SkipRecord
from memconform.results.agreement import Agreement
from memconform.results.records import ParityReport
from memconform.runs.results import RunResult
from memconform.storage.sink import Masked, Sink, json_bytes

REPORT_SCHEMA: Literal["memconform/run-report@1"] = "memconform/run-report@1"


class RunReport(Record):
    """The report of `run --json`: the results of one command."""

    schema_version: Literal["memconform/run-report@1"] = REPORT_SCHEMA
    exit_code: int
    skipped: list[SkipRecord] = Field(default_factory=list)
    agreement: Agreement | None = None
    """Agreement of the runs, if several finished."""
    parity: ParityReport | None = None
    """Agreement pair by pair, with statistics."""
    runs: list[RunResult]


def agreement_banner(agreement: Agreement) -> str:
    """Format `<sdk>, <sdk>: rankings equal <n>/<compared>[, answers equal <n>/<compared>]`.

    Questions that were not measured on every SDK are not differences; they are counted separately.
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
    skipped: Sequence[SkippedSdk] = (),
    agreement: Agreement | None = None,
    parity: ParityReport | None = None,
) -> None:
    """Write the report of a command; the result files of its runs are copied unchanged."""
    records = [sdk.record() for sdk in skipped]
    report = RunReport(
        exit_code=exit_code, skipped=records, agreement=agreement, parity=parity, runs=[]
    )
    head = json_bytes(report.model_dump(mode="json", exclude={"runs"})).removesuffix(b"}")
    target.write_masked(Masked(head + b', "runs": ['))
    for index, path in enumerate(results):
        target.write_masked(Masked(b",\n" if index else b"\n"))
        with path.open("rb") as result:
            for line in result:
                target.write_masked(Masked(line))
    target.write_masked(Masked(b"]}\n"))
