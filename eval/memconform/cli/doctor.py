"""`memconform doctor`."""

from dataclasses import dataclass

import click

from memconform.cli.grouping import DAEMONS, Command, option
from memconform.cli.lazy import carry_out
from memconform.cli.options import env, header, keep, log_level, quiet, upstream
from memconform.daemons.kinds import UpstreamKind
from memconform.errors import ExitCode


@dataclass(frozen=True, slots=True)
class DoctorOptions:
    """Flags of `doctor`, under their own names."""

    sdk: str
    upstream: UpstreamKind
    header: tuple[str, ...]
    env: tuple[str, ...]
    keep: bool
    quiet: bool
    log_level: str


@click.command(
    "doctor",
    cls=Command,
    examples=("memconform doctor --sdk go", "memconform doctor --sdk path/to/sdk.toml"),
    exit_codes={
        ExitCode.FAILED: "the daemon does not do what it claims",
        ExitCode.DAEMON: "it did not start, or died",
    },
)
@option(
    "--sdk",
    group=DAEMONS,
    required=True,
    metavar="SDK",
    help="SDK to test: a known name, a path to an sdk.toml, package.module:Class, or"
    " url:http://127.0.0.1:PORT[,dialect=NAME] for a running daemon.",
)
@upstream
@env
@keep
@header
@quiet
@log_level
def command(**flags: object) -> ExitCode:
    """Try an SDK step by step: build, start, ingest, search, ask, stop.

    A failing step is shown with its cause; later steps are tried where that makes sense.
    """
    options = DoctorOptions(**flags)  # type: ignore[arg-type] # click has validated every flag
    return carry_out("execute_doctor:doctor", options)
