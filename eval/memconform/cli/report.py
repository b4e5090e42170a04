"""`memconform report`."""

from pathlib import Path

import click

from memconform.errors import ExitCode
from memconform.printing.output import echo
from memconform.reports.tables import tables
from memconform.storage.writing import replacing


@click.group("report")
def command() -> None:
    """Make documents of results."""


@command.command("tables")
@click.option("--check", is_flag=True, help="Change nothing; fail where a README differs.")
@click.argument(
    "checkout", type=click.Path(path_type=Path, exists=True, file_okay=False), default="."
)
def tables_command(checkout: Path, *, check: bool) -> ExitCode:
    """Write the tables of the READMEs in CHECKOUT anew, from its results/published.

    \b
    Exit codes: 0 ok, 1 a README differs (--check), 2 something published is missing or is none.
    """
    code = ExitCode.OK
    for table in tables(checkout):
        content = table.readme.read_text(encoding="utf-8")
        placed = table.placed(content)
        if placed == content:
            echo(f"{table.readme}: {table.name} is what is published")
        elif check:
            echo(f"{table.readme}: {table.name} differs from what is published", err=True)
            code = ExitCode.FAILED
        else:
            with replacing(table.readme) as file:
                file.write_text(placed)
            echo(f"{table.readme}: {table.name} written")
    return code
