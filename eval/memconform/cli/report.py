"""`memconform report`."""

from pathlib import Path

import click

from memconform.cli.commands import OUTPUT, Group, option
from memconform.cli.export_options import ExportOptions
from memconform.cli.lazy import carry_out
from memconform.cli.options import results as results_folder
from memconform.cli.options import writable_exports
from memconform.cli.report_formats import FORMATS
from memconform.errors import ExitCode


@click.group("report", cls=Group, examples=("memconform report html RUN -o report.html",))
def command() -> None:
    """Show stored results as one HTML file, or in the formats of other programs."""


@command.command(
    "export",
    examples=(
        "memconform report export BENCH-RUN --export queries.csv",
        "memconform report export BENCH-RUN#go/bm25 --export longmemeval=log.jsonl",
    ),
    exit_codes={
        ExitCode.USAGE: "usage, or a result that cannot be read or exported",
        ExitCode.DAEMON: "a retrieval log lacks questions that were not measured",
    },
)
@click.argument("results", nargs=-1, required=True, metavar="RESULT...")
@option(
    "--export",
    group=OUTPUT,
    multiple=True,
    required=True,
    metavar="[FORMAT=]FILE",
    callback=writable_exports,
    help="FILE.csv or FILE.jsonl: every query with gold, rank, metrics and ranking;"
    " `longmemeval=FILE`: a retrieval log of one row, which LongMemEval's released code reads. May"
    " be given several times.",
)
@option(
    "--data",
    group=OUTPUT,
    type=click.Path(path_type=Path),
    metavar="FILE",
    show_default="where it was when it was measured",
    help="For a retrieval log: the benchmark's file, with the questions and their sessions.",
)
@results_folder
def export_command(
    results: tuple[str, ...], export: tuple[str, ...], data: Path | None, output: Path
) -> ExitCode:
    """Write the queries of stored bench results to files.

    RESULT is a result file of `bench`, a run's folder or a run id; `#SYSTEM/STRATEGY` behind it
    selects some of its rows.
    """
    options = ExportOptions(results, export, data, output)
    return carry_out("export:export", options)


for _format in FORMATS:
    command.add_command(_format)
