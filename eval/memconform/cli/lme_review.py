"""`memconform lme review` and `memconform lme arbitrate`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import click

from memconform.cli.commands import OUTPUT, SCORING, Command, option
from memconform.cli.lazy import carry_out
from memconform.cli.options import json_file, markdown, schema, writable
from memconform.errors import ExitCode

_VERDICTS = "Verdicts"


@dataclass(frozen=True, slots=True)
class ReviewOptions:
    """Flags of `lme review`."""

    before: str
    after: str
    overrides: bool
    across_rubrics: bool
    fail_on: str | None
    json_file: str | None
    markdown: str | None
    quiet: bool


@click.command(
    "review",
    cls=Command,
    examples=(
        "memconform lme review --before OLD/result-go.json --after NEW/result-go.json",
        "memconform lme review --before OLD#go --after NEW#go --json -",
    ),
    exit_codes={
        ExitCode.FAILED: "significantly fewer right answers after",
        ExitCode.USAGE: "usage, or results that cannot be compared",
        ExitCode.DAEMON: "a question was not measured in one of the results",
        ExitCode.NOTHING_SELECTED: "no question was measured in both",
        ExitCode.INCONCLUSIVE: "inconclusive with --fail-on inconclusive",
    },
)
@option(
    "--before",
    group=SCORING,
    required=True,
    metavar="RESULT",
    help="The earlier result: result-<sdk>.json, a folder that holds one, or FOLDER#SDK; also a"
    " result of `memory eval lme run` of jeffs-brain/memory.",
)
@option(
    "--after",
    group=SCORING,
    required=True,
    metavar="RESULT",
    help="The later result, in the same ways.",
)
@option(
    "--overrides",
    group=SCORING,
    is_flag=True,
    help="Use human verdicts (`lme arbitrate`) instead of the judge's, in both results.",
)
@option(
    "--across-rubrics",
    group=SCORING,
    is_flag=True,
    help="Compare results that were judged by different rubrics, such as those of two runners."
    " What differs may then be the judges alone.",
)
@option(
    "--fail-on",
    group=SCORING,
    type=click.Choice(["inconclusive"]),
    help="Exit 5 if the comparison decides nothing.",
)
@json_file
@markdown
@schema("replay.review_records:LmeReview")
@option("--quiet", group=OUTPUT, is_flag=True, help="Show only the summary.")
def review_command(**flags: object) -> ExitCode:
    """Compare two results of the replay question by question: regressions, fixes, categories.

    Both must be of the same data and judged by the same rubric; all other differences in settings
    are listed. Questions that one of them did not measure are named, and count for neither.
    """
    return carry_out("execute_lme_review:run", ReviewOptions(**flags))  # type: ignore[arg-type] # click has checked every flag


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
@click.argument("result")
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
    type=click.Path(path_type=Path),
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
    return carry_out("execute_lme_arbitrate:run", options)
