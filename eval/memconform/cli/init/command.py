"""`memconform init`."""

from dataclasses import dataclass
from pathlib import Path

import click

from memconform.cli.commands import DAEMONS, REFERENCE, Command, PathType, option
from memconform.cli.lazy import carry_out
from memconform.errors import ExitCode


@dataclass(frozen=True, slots=True)
class InitOptions:
    """The repository to describe, or the daemon to observe."""

    folder: Path
    url: str | None


@click.command(
    "init",
    cls=Command,
    examples=(
        "memconform init",
        "memconform init --url http://127.0.0.1:8080",
    ),
    exit_codes={
        ExitCode.OK: "the files are written",
        ExitCode.USAGE: "usage, no program was recognized, or a file exists already",
        ExitCode.DAEMON: "nothing answers at --url",
    },
)
@click.argument(
    "folder",
    type=PathType(exists=True, file_okay=False),
    default=Path(),
    metavar="[FOLDER]",
)
@option(
    "--url",
    group=DAEMONS,
    type=REFERENCE,
    metavar="URL",
    help="Instead of a repository, a daemon on this machine that speaks no contract: write a"
    " dialect.toml with the routes that it answers. Only GET requests are sent.",
)
def command(folder: Path, url: str | None) -> ExitCode:
    """Describe a repository: write its sdk.toml, known-failures.yaml and a CI workflow.

    Go, Node, Python, Rust, Java and .NET are recognized by their files; nothing is executed, and
    no file is replaced. What the files do not show is marked with `check:` (docs/SDK-AUTHORS.md).
    """
    return carry_out("init.execution:init", InitOptions(folder, url))
