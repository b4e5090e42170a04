"""`memconform lme arbitrate`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import click

from memconform.cli.commands import OUTPUT, REFERENCE, Command, PathType, option
from memconform.cli.lazy import carry_out
from memconform.cli.options import json_file, schema, writable
from memconform.errors import ExitCode

_VERDICTS = "Verdicts"


@dataclass(frozen=True, slots=True)
class ArbitrateOptions:
    """Flags of `lme arbitrate`."""

    result: str
    only: Literal["all", "disagreements", "incorrect"]
    sample: int | None
    seed: int
    by: str
    export: str | None
    imported: Path | None
    json_file: str | None
    quiet: bool


@click.command(
    "arbitrate",
    cls=Command,
    examples=(
        "memconform lme arbitrate RESULT --by NAME --sample 50",
        "memconform lme arbitrate RESULT --only incorrect --export answers.csv",
        "memconform lme arbitrate RESULT --by NAME --import answers.csv",
    ),
    exit_codes={ExitCode.NOTHING_SELECTED: "no answer to show"},
)
@click.argument("result", type=REFERENCE)
@option(
    "--by",
    group=_VERDICTS,
    default="",
    metavar="NAME",
    show_default="report the stored verdicts only",
    help="Who gives the verdicts.",
)
@option(
    "--only",
    group=_VERDICTS,
    type=click.Choice(["all", "disagreements", "incorrect"]),
    default="all",
    help="Show these answers; disagreements are those on which judges differ from each other, or"
    " from the exact match.",
)
@option(
    "--sample",
    group=_VERDICTS,
    type=click.IntRange(min=1),
    metavar="N",
    help="Show N judged answers drawn at random, which tells how often the judge is wrong.",
)
@option(
    "--seed",
    group=_VERDICTS,
    type=click.IntRange(min=0),
    default=42,
    metavar="N",
    help="Seed of --sample; a larger sample begins with the smaller one.",
)
@option(
    "--export",
    group=_VERDICTS,
    metavar="FILE.csv",
    callback=writable,
    help="Write the answers to a table with an empty column for verdicts, and stop.",
)
@option(
    "--import",
    "imported",
    group=_VERDICTS,
    type=PathType(),
    metavar="FILE.csv",
    help="Read the verdicts from that table. Give the same --only or --sample to report on them.",
)
@json_file
@schema("replay.arbitration_records:LmeArbitration")
@option("--quiet", group=OUTPUT, is_flag=True, help="Show only the summary.")
def arbitrate_command(**flags: object) -> ExitCode:
    """Overrule the judge's verdicts by hand, and measure how often the judge is wrong.

    Shows one answer at a time; verdicts are kept in overrides.jsonl beside the result, which never
    changes. Run it again to continue.
    """
    options = ArbitrateOptions(**flags)  # type: ignore[arg-type] # click has checked every flag
    if options.sample is not None and options.only != "all":
        raise click.UsageError("give --only or --sample, not both")
    if options.export is not None and options.imported is not None:
        raise click.UsageError("give --export or --import, not both")
    if options.imported is not None and not options.by.strip():
        raise click.UsageError("--import needs --by NAME")
    return carry_out("lme.arbitration:run", options)
