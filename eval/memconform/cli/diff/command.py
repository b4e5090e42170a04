"""`memconform diff`: what changed between two results, or over several."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memconform.cli import options as given
from memconform.cli.commands import OUTPUT, REFERENCE, SCORING, Command, option, reject_other_flags
from memconform.cli.lazy import carry_out
from memconform.cli.options import json_file, markdown, results, schema
from memconform.cli.result_kinds import compared_kind, metric, view
from memconform.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from memconform.stats.latency_ratio import LatencyRatio

_REPLAYS = "Two results of lme"
_TREND = "More than two results"

INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class DiffOptions:
    """Flags for two results of a run, a scoring or a bench."""

    first: str
    second: str
    fail_on: tuple[str, ...]
    seed: int
    output: Path
    json_file: str | None
    markdown: str | None
    quiet: bool
    metric: str | None
    view: str | None

    def limits(self) -> list[float | None]:
        """The ratios of `--fail-on latency:RATIO`, and None for `--fail-on regression`.

        Raises:
            UsageError: for any other value (`bad_fail_on`).
        """
        return [limit_of(condition) for condition in self.fail_on]


@dataclass(frozen=True, slots=True)
class ReviewOptions:
    """Flags for two results of the replay."""

    first: str
    second: str
    overrides: bool
    across_rubrics: bool
    fail_on: tuple[str, ...]
    seed: int
    json_file: str | None
    markdown: str | None
    quiet: bool


@dataclass(frozen=True, slots=True)
class TrendOptions:
    """Flags for the change over several results."""

    results: tuple[str, ...]
    sdk: tuple[str, ...]
    dataset: tuple[str, ...]
    output: Path
    json_file: str | None = None
    markdown: str | None = None


overrides = option(
    "--overrides",
    group=_REPLAYS,
    is_flag=True,
    help="Use human verdicts (`lme arbitrate`) instead of the judge's, in both results.",
)
across_rubrics = option(
    "--across-rubrics",
    group=_REPLAYS,
    is_flag=True,
    help="Compare results that were judged by different rubrics, such as those of two runners."
    " What differs may then be the judges alone.",
)
sdk = option(
    "--sdk",
    group=_TREND,
    multiple=True,
    metavar="NAME",
    help="Show only this SDK, baseline of a bench, or arm of `score`. May be given several times.",
)
dataset = given.data(
    _TREND,
    "Show only this dataset, or suite of a bench. May be given several times.",
    field="dataset",
    metavar="SET",
    multiple=True,
)
quiet = option("--quiet", group=OUTPUT, is_flag=True, help="Show only the summary.")

_KINDS: Mapping[str, tuple[str, type]] = {
    "runs": ("two results", DiffOptions),
    "replays": ("two results of lme", ReviewOptions),
    "trend": ("more than two results, or a folder", TrendOptions),
}
"""What is compared: the name, and the flags by the fields of their options."""


@click.command(
    "diff",
    cls=Command,
    examples=(
        "memconform diff old.json new.json --fail-on regression --fail-on latency:1.2",
        "memconform diff OLD/result-go.json NEW/result-go.json --markdown review.md",
        "memconform diff results --sdk go --data lme",
    ),
    exit_codes={
        ExitCode.FAILED: "what --fail-on names; significantly fewer right answers of lme",
        ExitCode.USAGE: "usage, or results that cannot be compared",
        ExitCode.DAEMON: "an incident ended one of the runs; a question of lme was not measured",
        ExitCode.NOTHING_SELECTED: "no result found, or no question was measured in both",
        ExitCode.INCONCLUSIVE: "unmeasured questions leave --fail-on undecided, or it names that",
    },
)
@click.argument("results", type=REFERENCE, nargs=-1, metavar="[RESULT...]")
@option(
    "--fail-on",
    group=SCORING,
    multiple=True,
    metavar="regression|latency:RATIO|inconclusive",
    help="Exit 1 if a question that passed no longer does, or if the confidence interval of the"
    " latency ratio lies above RATIO; exit 5 if a comparison of lme decides nothing. May be given"
    " several times.",
)
@option(
    "--seed",
    group=SCORING,
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Seed of the resampling.",
)
@metric
@view
@overrides
@across_rubrics
@sdk
@dataset
@results
@json_file
@markdown
@schema(
    "results.run_diff:DiffReport",
    "bench.comparison_records:BenchDiffReport",
    "replay.review_records:LmeReview",
    "results.trend:TrendReport",
)
@quiet
@click.pass_context
def command(context: click.Context, /, results: tuple[str, ...], **flags: Any) -> ExitCode:  # noqa: ANN401 - one value a flag
    """Show what changed between two results, or over dates and versions.

    RESULT is a result file, a run's folder or a run id of `run`, `score`, `bench` or `lme`;
    `#SUBJECT` behind one selects an arm, a rubric, an SDK or a row. More than two, or a folder of
    results (by default that of --output), are shown as a trend.
    """
    for condition in flags["fail_on"]:
        limit_of(condition, INCONCLUSIVE)
    kind = compared_kind(results, flags["output"])
    name, options = _KINDS[kind]
    values = {field.name for field in fields(options)}
    reject_other_flags(context, name, values | {"results"})
    chosen = {key: value for key, value in flags.items() if key in values}
    match kind:
        case "trend":
            trend = TrendOptions(results=results or (str(flags["output"]),), **chosen)
            return carry_out("diff.trend:run", trend)
        case "replays":
            review = ReviewOptions(first=results[0], second=results[1], **chosen)
            return carry_out("diff.replays:run", review)
    runs = DiffOptions(first=results[0], second=results[1], **chosen)
    return carry_out("diff.execution:run", runs)


def limit_of(condition: str, *others: str) -> float | None:
    """Return the ratio of `latency:RATIO`, or None for `regression` and for one of `others`.

    Raises:
        UsageError: for another condition (`bad_fail_on`).
    """
    name, colon, ratio = condition.partition(":")
    if condition == "regression" or condition in others:
        return None
    try:
        limit = float(ratio)
    except ValueError:
        limit = 0.0
    if name != "latency" or not colon or not 0 < limit < float("inf"):
        raise UsageError(
            f"--fail-on {condition} is invalid",
            code="bad_fail_on",
            hint="write --fail-on regression, or --fail-on latency:1.2; for two results of lme also"
            " --fail-on inconclusive",
        )
    return limit


def latency_codes(
    latency: "LatencyRatio | None", limit: float, *, compared: int, is_whole: bool
) -> Iterator[ExitCode]:
    """How `--fail-on latency:RATIO` ends.

    Args:
        latency: None if too few questions have one.
        limit: RATIO.
        compared: questions that both results measured.
        is_whole: whether they are all: one that was not measured may be the one that took too long.
    """
    if latency is None or not is_whole or latency.questions < compared:
        yield ExitCode.INCONCLUSIVE
    if latency is not None and latency.ratio.low > limit:
        yield ExitCode.FAILED
