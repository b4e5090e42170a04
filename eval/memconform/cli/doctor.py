"""`memconform doctor`."""

from dataclasses import dataclass

import click

from memconform.cli.lazy import carry_out
from memconform.cli.options import log_level, upstream
from memconform.daemons.kinds import UpstreamKind
from memconform.errors import ExitCode


@dataclass(frozen=True, slots=True)
class DoctorOptions:
    """The command line, typed."""

    sdk: str
    upstream: UpstreamKind
    header: tuple[str, ...]
    log_level: str


@click.command("doctor")
@click.option(
    "--sdk",
    required=True,
    metavar="SDK",
    help="A known name, a path to sdk.toml, package.module:Class, or url:http://127.0.0.1:PORT.",
)
@upstream
@click.option("--header", multiple=True, metavar="NAME:VALUE", help="Send it with every request.")
@log_level
def command(sdk: str, upstream: UpstreamKind, header: tuple[str, ...], log_level: str) -> ExitCode:
    """Try an SDK step by step: build, start, ingest, search, ask, stop.

    \b
    Exit codes: 0 ok, 1 it does not do what it claims, 2 usage, 3 it did not start or died.
    """
    return carry_out("execute_doctor:doctor", DoctorOptions(sdk, upstream, header, log_level))
