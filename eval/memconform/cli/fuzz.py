"""`memconform fuzz`."""

from pathlib import Path

import click

from memconform.cli.fuzz_options import FuzzOptions
from memconform.cli.grouping import OUTPUT, Command, option
from memconform.cli.lazy import carry_out
from memconform.cli.options import env, json_file, keep, log_level, schema, sdks
from memconform.errors import ExitCode

_REQUESTS = "What to send"


@click.command(
    "fuzz",
    cls=Command,
    examples=(
        "memconform fuzz --sdk all",
        "memconform fuzz --sdk mine --sdk py --examples 500 --seed 1",
    ),
    exit_codes={
        ExitCode.OK: "the SDKs agree",
        ExitCode.FAILED: "they disagree, or one resets connections",
        ExitCode.DAEMON: "a daemon did not start, or stopped responding",
    },
)
@sdks(required=True)
@env
@keep
@option(
    "--examples",
    group=_REQUESTS,
    type=click.IntRange(min=1),
    default=2_000,
    metavar="N",
    help="Number of request sequences to send to all daemons.",
)
@option(
    "--seed",
    group=_REQUESTS,
    type=click.IntRange(min=0),
    show_default="random",
    metavar="N",
    help="Seed of the request sequences: the same seed sends the same ones.",
)
@option(
    "--output",
    group=OUTPUT,
    aliases=("--into",),
    type=click.Path(path_type=Path, file_okay=False),
    default="results/fuzz",
    metavar="DIR",
    help="Folder to write results to: the case of a disagreement.",
)
@json_file
@schema("fuzzing.results:FuzzReport")
@log_level
def command(**flags: object) -> ExitCode:
    """Send the same random requests to several SDKs until their responses differ.

    Requests are valid or nearly so. The first disagreement is shrunk to a minimal case, which
    `conform --cases` repeats.
    """
    options = FuzzOptions(**flags)  # type: ignore[arg-type] # click has validated every flag
    return carry_out("execute_fuzz:fuzz", options, extra="fuzz")
