"""Results as JSON for other programs."""

import codecs
import json
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from memconform.errors import ExitCode
from memconform.runs.results import REPORT_SCHEMA, RunSummary


def banner(summary: RunSummary) -> str:
    """`<sdk>: <passed>/<total> pass_rate=<rate> mean_score=<score>`; `none` where unknown."""
    rates = (summary.pass_rate, summary.mean_score)
    pass_rate, mean_score = ("none" if rate is None else f"{rate:.4f}" for rate in rates)
    counts = f"{summary.passed}/{summary.total}"
    return f"{summary.sdk}: {counts} pass_rate={pass_rate} mean_score={mean_score}"


def write_report(
    target: "IO[str] | codecs.StreamWriter", results: Sequence[Path], exit_code: ExitCode
) -> None:
    """The report of a command: its exit code, and the result of each of its runs as it is."""
    head = {"schema_version": REPORT_SCHEMA, "exit_code": int(exit_code)}
    target.write(json.dumps(head).removesuffix("}") + ', "runs": [')
    for index, path in enumerate(results):
        target.write(",\n" if index else "\n")
        with path.open(encoding="utf-8") as result:
            target.writelines(result)
    target.write("]}\n")
