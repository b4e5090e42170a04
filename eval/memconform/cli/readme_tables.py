"""Updates the tables of the READMEs, for `scripts/readme_tables.py`."""

from pathlib import Path

import click

from memconform.cli.commands import OUTPUT, Command, option
from memconform.datasets.files import read_text
from memconform.errors import ExitCode, UsageError
from memconform.printing.output import echo
from memconform.reports.tables import tables
from memconform.storage.sink import replacing


@click.command(
    "readme_tables.py",
    cls=Command,
    examples=("scripts/readme_tables.py", "scripts/readme_tables.py --check"),
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
def command(checkout: Path, *, check: bool) -> ExitCode:
    """Update the tables of the READMEs from results/published.

    CHECKOUT is a checkout of the project, by default the current folder.
    """
    code = ExitCode.OK
    for table in tables(checkout):
        content = _content(table.readme)
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


def _content(readme: Path) -> str:
    """The text of a README, with line ends as in the tables."""
    try:
        return read_text(readme).replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{readme} is not UTF-8 at byte {error.start}",
            code="dataset_unreadable",
            hint="save it as UTF-8",
        ) from error
