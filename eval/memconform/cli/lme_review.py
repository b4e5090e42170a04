"""`memconform lme review`."""

from dataclasses import dataclass

import click

from memconform.cli.grouping import OUTPUT, SCORING, Command, option
from memconform.cli.lazy import carry_out
from memconform.cli.options import json_file, markdown, schema
from memconform.errors import ExitCode


@dataclass(frozen=True, slots=True)
class ReviewOptions:
    """Flags of `lme review`."""

    before: str
    after: str
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
    help="The earlier result: result-<sdk>.json, a folder that holds one, or FOLDER#SDK.",
)
@option(
    "--after",
    group=SCORING,
    required=True,
    metavar="RESULT",
    help="The later result, in the same ways.",
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
