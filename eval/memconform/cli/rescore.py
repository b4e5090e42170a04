"""`memconform rescore`."""

import asyncio
import sys
from pathlib import Path

import click

from memconform.cli.options import floors, json_file, output, schema
from memconform.cli.targets import json_target
from memconform.cli.values import read_floors
from memconform.errors import ExitCode
from memconform.printing.output import echo
from memconform.reports.console import ConsoleReport
from memconform.reports.machine import banner, write_run_report
from memconform.runs.rescoring import rescore
from memconform.storage.folders import find_journal


@click.command("rescore", context_settings={"show_default": True})
@click.argument("result")
@click.option(
    "--dataset",
    metavar="SET",
    help="Another version of the dataset, with the same ids in the same order.",
)
@floors
@output
@json_file
@click.option("--quiet", is_flag=True, help="No table.")
@schema("reports.machine:RunReport")
def command(  # noqa: PLR0917 - one parameter a flag
    result: str,
    dataset: str | None,
    floor: tuple[str, ...],
    output: Path,
    json_file: str | None,
    quiet: bool,  # noqa: FBT001 - click's signature
) -> ExitCode:
    """Score the stored answers of a run anew, without a daemon.

    RESULT is a run id, a run's folder, or a result file. The old result stays as it is.
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
