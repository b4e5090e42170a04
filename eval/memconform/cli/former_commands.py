"""Commands of the last version whose flags their successors do not take as they were."""

from pathlib import Path

import click

from memconform.cli.commands import OUTPUT, Command, option
from memconform.cli.export_options import ExportOptions
from memconform.cli.lazy import carry_out
from memconform.cli.options import results as results_folder
from memconform.cli.options import writable_exports
from memconform.errors import ExitCode


@click.command("report export", cls=Command)
@click.argument("results", nargs=-1, required=True, metavar="RESULT...")
@option(
    "--export",
    group=OUTPUT,
    multiple=True,
    required=True,
    metavar="[FORMAT=]FILE",
    callback=writable_exports,
    help="FILE.csv or FILE.jsonl: every query; `longmemeval=FILE`: a retrieval log of one row. May"
    " be given several times.",
)
@option(
    "--data",
    group=OUTPUT,
    type=click.Path(path_type=Path),
    metavar="FILE",
    show_default="where it was when it was measured",
    help="For a retrieval log: the benchmark's file.",
)
@results_folder
def export_command(
    results: tuple[str, ...], export: tuple[str, ...], data: Path | None, output: Path
) -> ExitCode:
    """Write the queries of stored bench results to files."""
    options = ExportOptions(results, export, data, output)
    return carry_out("export:export", options)
