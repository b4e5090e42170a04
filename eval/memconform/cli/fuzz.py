"""`memconform fuzz`."""

from pathlib import Path

import click

from memconform.cli.fuzz_options import FuzzOptions
from memconform.cli.lazy import carry_out
from memconform.cli.options import json_file, log_level, schema, sdks
from memconform.errors import ExitCode


@click.command("fuzz", context_settings={"show_default": True})
@sdks(required=True)
@click.option(
    "--examples", type=click.IntRange(min=1), default=2_000, help="Programs to put to all daemons."
)
@click.option("--seed", type=click.IntRange(min=0), help="The same programs again; any by default.")
@click.option(
    "--into",
    type=click.Path(path_type=Path, file_okay=False),
    default="results/fuzz",
    metavar="DIR",
    help="Where the case of a disagreement is written.",
)
@json_file
@schema("fuzzing.results:FuzzReport")
@log_level
def command(**flags: object) -> ExitCode:
    """Put the same requests, valid and nearly so, to several daemons until they part.

    What they part about is made as small as it will get, and written as a case.

    \b
    Exit codes: 0 they agree, 1 they part, 2 usage, 3 a daemon did not start or could not be asked
    any more, 70 internal error, 130 interrupted.
    """
    options = FuzzOptions(**flags)  # type: ignore[arg-type] # click has checked every flag
    return carry_out("execute_fuzz:fuzz", options, extra="fuzz")
