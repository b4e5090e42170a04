"""`memconform view`."""

from dataclasses import dataclass
from pathlib import Path

import click

from memconform.cli.commands import OUTPUT, REFERENCE, Command, option
from memconform.cli.lazy import carry_out
from memconform.cli.options import results as results_folder
from memconform.errors import ExitCode


@dataclass(frozen=True, slots=True)
class ViewOptions:
    """Flags of `view`."""

    results: tuple[str, ...]
    port: int
    output: Path
    baseline: tuple[str, ...]


@click.command(
    "view",
    cls=Command,
    examples=("memconform view", "memconform view results/2026-11-25 --port 8123"),
    exit_codes={ExitCode.USAGE: "usage, the port is taken, or a result does not exist"},
)
@click.argument("results", type=REFERENCE, nargs=-1, metavar="[RESULT...]")
@option(
    "--port",
    group=OUTPUT,
    type=click.IntRange(0, 65535),
    default=0,
    metavar="N",
    help="Port on 127.0.0.1; 0 takes a free one.",
)
@option(
    "--baseline",
    group=OUTPUT,
    multiple=True,
    type=REFERENCE,
    metavar="RESULT",
    help="Earlier results for the report. May be given several times.",
)
@results_folder
def command(
    results: tuple[str, ...], port: int, baseline: tuple[str, ...], output: Path
) -> ExitCode:
    """Show results in a browser, and follow runs as they happen, until Ctrl-C.

    RESULT is what the report shows, by default everything in the results folder. Whoever has the
    printed address, which contains a token, can read the results and stop runs.
    """
    options = ViewOptions(results, port, output, baseline)
    return carry_out("view.execution:view", options, extra="report")
