"""`memconform plan`."""

from dataclasses import dataclass

import click

from memconform.cli.commands import Command, option
from memconform.cli.lazy import carry_out
from memconform.cli.options import json_file
from memconform.errors import ExitCode


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """Flags of `plan`, and the command line that it divides."""

    verb: str
    arguments: tuple[str, ...]
    shards: int
    json_file: str | None


@click.command(
    "plan",
    cls=Command,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    examples=(
        "memconform plan --shards 4 bench --suite locomo --data locomo --sdk all",
        "memconform plan --shards 8 --json - run --sdk go --data mine.jsonl",
        "memconform plan --shards 3 conform --sdk mine --profile core",
    ),
    exit_codes={ExitCode.NOTHING_SELECTED: "nothing to divide"},
)
@option(
    "--shards",
    group="What is divided",
    type=click.IntRange(1, 999_999),
    required=True,
    metavar="N",
    help="Number of shards.",
)
@json_file
@click.argument("verb", type=click.Choice(["run", "bench", "wmb", "lme", "conform", "client"]))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="FLAG...")
def command(**flags: object) -> ExitCode:
    """Show the shards of a command: what each of them has of the work.

    FLAGs are those of the command, without --shard; nothing is built, started or asked. --json
    writes the matrix of a CI job, whose entries have a `shard` such as 1/4 (docs/SCALE.md).
    """
    return carry_out("plan.execution:plan", PlanOptions(**flags))  # type: ignore[arg-type] # click has validated every flag
