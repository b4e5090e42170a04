"""`memconform merge`."""

from dataclasses import dataclass
from pathlib import Path

import click

from memconform.cli.commands import OUTPUT, REFERENCE, SCORING, Command, option
from memconform.cli.lazy import carry_out
from memconform.cli.options import json_file, output, quiet
from memconform.errors import ExitCode


@dataclass(frozen=True, slots=True)
class MergeOptions:
    """Flags of `merge`, under their own names."""

    parts: tuple[str, ...]
    partial: bool
    require_agreement: bool
    output: Path
    json_file: str | None
    quiet: bool


@click.command(
    "merge",
    cls=Command,
    examples=(
        "memconform merge part-1 part-2 part-3 --output whole",
        "memconform merge artefacts --output whole --json merged.json",
        "memconform merge results/runs/RUN-1 results/runs/RUN-2 --output half --partial",
    ),
    exit_codes={
        ExitCode.FAILED: "below a floor, drift, or a case failed",
        ExitCode.DAEMON: "a daemon failed, or too little was measured",
        ExitCode.INCONCLUSIVE: "agreement cannot be decided with --require-agreement",
        ExitCode.NOTHING_SELECTED: "no result of a shard, or no question to measure",
    },
)
@click.argument("parts", type=REFERENCE, nargs=-1, required=True, metavar="PART...")
@output
@option(
    "--partial",
    group=OUTPUT,
    is_flag=True,
    help="Join what there is although shards are missing. The result is a part, too: no floor is"
    " decided, and it can be joined with the others later.",
)
@option(
    "--require-agreement",
    group=SCORING,
    is_flag=True,
    help="Fail unless the SDKs rank and answer every question alike, as of `run` and `bench`.",
)
@json_file
@quiet
def command(**flags: object) -> ExitCode:
    """Join the results of all shards, as if one machine had done their work.

    PART is a result that was made with --shard, its folder, a run id, or a folder that has such
    results at any depth. Every shard must be there once, of the same settings, data and builds.
    docs/SCALE.md says in what the result may differ from that of one machine.
    """
    return carry_out("merge.execution:merge", MergeOptions(**flags))  # type: ignore[arg-type] # click has validated every flag
