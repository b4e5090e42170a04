"""`memconform fuzz`."""

import sys
from dataclasses import dataclass
from pathlib import Path

import click

from memconform.cli.commands import FOLDER, OUTPUT, Command, option
from memconform.cli.lazy import carry_out
from memconform.cli.options import duration, env, json_file, keep, log_level, quiet, schema, sdks
from memconform.errors import ExitCode

DEFAULT_EXAMPLES = 2_000


@dataclass(frozen=True, slots=True)
class FuzzOptions:
    """Flags of `fuzz`, under their own names."""

    sdk: tuple[str, ...]
    no_skip: bool
    env: tuple[str, ...]
    keep: bool
    against: str | None
    examples: int | None
    seconds: float | None
    seed: int | None
    keep_going: bool
    ignore: tuple[str, ...]
    corpus: Path | None
    output: Path
    json_file: str | None
    quiet: bool
    log_level: str

    @property
    def most_examples(self) -> int:
        """How many programs to try; any number if only the time is limited."""
        if self.examples is not None:
            return self.examples
        return DEFAULT_EXAMPLES if self.seconds is None else sys.maxsize


_REQUESTS = "What to send"
_COMPARING = "What to compare"


def _pointers(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Check that pointers begin as those of reports do."""
    for value in values:
        if value.split("/")[1:2] not in (["body"], ["headers"], ["media"]):
            raise click.BadParameter(f"{value!r} does not begin with /body, /headers or /media")
    return values


@click.command(
    "fuzz",
    cls=Command,
    examples=(
        "memconform fuzz --sdk all",
        "memconform fuzz --sdk mine --against oracle --time 10m --keep-going",
        "memconform fuzz --sdk mine --sdk py --examples 500 --seed 1",
    ),
    exit_codes={
        ExitCode.OK: "the SDKs agree, with each other or with the oracle",
        ExitCode.FAILED: "they disagree, or one resets connections",
        ExitCode.DAEMON: "a daemon did not start, or stopped responding",
    },
)
@sdks(required=True)
@env
@keep
@option(
    "--against",
    group=_COMPARING,
    type=click.Choice(("oracle",)),
    help="Compare each SDK with a model of the contract, not the SDKs with each other.",
)
@option(
    "--ignore",
    group=_COMPARING,
    multiple=True,
    callback=_pointers,
    metavar="POINTER",
    help="Do not compare values at a pointer such as /body/chunks/*/title. Repeatable.",
)
@option(
    "--keep-going",
    group=_COMPARING,
    is_flag=True,
    help="Collect disagreements of different kinds instead of ending at the first one.",
)
@option(
    "--examples",
    group=_REQUESTS,
    type=click.IntRange(min=1),
    show_default=f"{DEFAULT_EXAMPLES}, or any number with --time",
    metavar="N",
    help="Number of request sequences to send to all daemons.",
)
@option(
    "--time",
    "seconds",
    group=_REQUESTS,
    callback=duration,
    metavar="DURATION",
    help="Try no new sequence after a time such as 90s, 10m or 1h.",
)
@option(
    "--corpus",
    group=_REQUESTS,
    type=FOLDER,
    metavar="DIR",
    help="Begin with the sequences of a folder, and add those that find something new.",
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
    type=FOLDER,
    default="results/fuzz",
    metavar="DIR",
    help="Folder to write results to: the case of a disagreement.",
)
@json_file
@schema("fuzzing.results:FuzzReport")
@quiet
@log_level
def command(**flags: object) -> ExitCode:
    """Send random requests to SDKs until their responses differ, or violate the contract.

    Requests are valid or nearly so. Without `--against oracle`, all SDKs get the same requests and
    are compared with each other. A disagreement is shrunk to a minimal case, which `conform
    --cases` repeats.
    """
    options = FuzzOptions(**flags)  # type: ignore[arg-type] # click has validated every flag
    return carry_out("fuzz.execution:fuzz", options, extra="fuzz")
