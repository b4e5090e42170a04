"""`memconform report`."""

from pathlib import Path

import click

from memconform.cli.grouping import OUTPUT, Group, option
from memconform.errors import ExitCode
from memconform.printing.output import echo
from memconform.reports.tables import tables
from memconform.storage.writing import replacing


@click.group("report", cls=Group, examples=("memconform report tables --check",))
def command() -> None:
    """Generate parts of documents from published results."""


@command.command(
    "tables",
    examples=("memconform report tables", "memconform report tables --check"),
    exit_codes={
        ExitCode.FAILED: "a README is out of date (--check)",
        ExitCode.USAGE: "usage, or a published result is missing or invalid",
    },
)
@option(
    "--check",
    group=OUTPUT,
    is_flag=True,
    help="Change nothing; fail if a README is out of date.",
)
@click.argument(
    "checkout", type=click.Path(path_type=Path, exists=True, file_okay=False), default="."
)
def tables_command(checkout: Path, *, check: bool) -> ExitCode:
    """Update the tables of the READMEs from results/published.

    CHECKOUT is a checkout of the project, by default the current folder.
    """
    code = ExitCode.OK
    for table in tables(checkout):
        content = table.readme.read_text(encoding="utf-8")
        updated = table.placed(content)
        if updated == content:
            echo(f"{table.readme}: {table.name} is up to date")
        elif check:
            echo(f"{table.readme}: {table.name} differs from the published results", err=True)
            code = ExitCode.FAILED
        else:
            with replacing(table.readme) as file:
                file.write_text(updated)
            echo(f"{table.readme}: {table.name} updated")
    return code
