"""The command line of `conform`, typed."""

from dataclasses import dataclass
from pathlib import Path

import click

from memconform.cli.commands import option
from memconform.conformance.names import CASES

CASES_GROUP = "Which cases"

cases_folder = option(
    "--cases",
    group=CASES_GROUP,
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default=CASES,
    show_default="the shipped cases",
    metavar="DIR",
    help="Folder of case files.",
)


@dataclass(frozen=True, slots=True)
class ConformOptions:
    """Flags of `conform`, under their own names."""

    sdk: tuple[str, ...]
    no_skip: bool
    env: tuple[str, ...]
    keep: bool
    profile: tuple[str, ...]
    case: tuple[str, ...]
    cases: Path
    known: tuple[Path, ...]
    write_known: str | None
    junit: str | None
    json_file: str | None
    html: bool
    markdown: str | None
    daemons: int
    trace: bool
    stop_at_first: bool
    output: Path
    verbose: bool
    quiet: bool
    log_level: str
