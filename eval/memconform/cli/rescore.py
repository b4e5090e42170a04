"""`memconform rescore`."""

import asyncio
import sys
from pathlib import Path

import click

from memconform.cli.grouping import Command, option
from memconform.cli.options import floors, json_file, output, quiet, schema
from memconform.cli.targets import json_target
from memconform.cli.values import read_floors
from memconform.errors import ExitCode
from memconform.printing.output import echo
from memconform.reports.console import ConsoleReport
from memconform.reports.machine import banner, write_run_report
from memconform.runs.rescoring import rescore
from memconform.storage.folders import find_journal


@click.command(
    "rescore",
    cls=Command,
    examples=(
        "memconform rescore results/2026-01-31/go.json",
        "memconform rescore go.json --dataset fixed.jsonl --floor 0.8",
    ),
    exit_codes={
        ExitCode.FAILED: "below a floor",
        ExitCode.DAEMON: "too little was measured, or an incident ended the run",
        ExitCode.NOTHING_SELECTED: "no question to score",
    },
)
@click.argument("result")
@option(
    "--dataset",
    group="What to score",
    metavar="SET",
    help="Another version of the dataset, with the same ids in the same order.",
)
@floors(unless_given="those of the run")
@output
@json_file
@schema("reports.machine:RunReport")
@quiet
def command(  # noqa: PLR0917 - one parameter a flag
    result: str,
    dataset: str | None,
    floor: tuple[str, ...],
    output: Path,
    json_file: str | None,
    quiet: bool,  # noqa: FBT001 - click's signature
) -> ExitCode:
    """Score the stored answers of a run again, without a daemon.

    RESULT is a result file, a run's folder or a run id. The old result is not changed.
    """
    end = asyncio.run(
        rescore(
            find_journal(output, result),
            output=output,
            dataset=dataset,
            floors=read_floors(floor) if floor else (),
            command=sys.argv,
        )
    )
    ConsoleReport(quiet=quiet).handle(end)
    echo(f"{banner(end.summary)} -> {end.copy}", err=json_file == "-")
    code = ExitCode(end.summary.exit_code)
    if json_file is not None:
        with json_target(json_file) as target:
            write_run_report(target, [end.result], code)
    return code
