"""`memconform diff`."""

from collections.abc import Sequence
from pathlib import Path

import click

from memconform.cli.commands import OUTPUT, SCORING, Command, option
from memconform.cli.lazy import carry_out
from memconform.cli.options import json_file, results, schema
from memconform.cli.result_kinds import BenchDiffOptions, are_benches, metric, view
from memconform.cli.targets import json_target
from memconform.errors import ExitCode, UsageError, gravest
from memconform.printing.output import echo
from memconform.reports.difference import diff_banner, show_difference
from memconform.reports.progress import StepProgress
from memconform.results.loaded_runs import method_lines
from memconform.results.references import load_pair
from memconform.results.run_diff import DiffReport, diff_runs


@click.command(
    "diff",
    cls=Command,
    examples=(
        "memconform diff old.json new.json --fail-on regression --fail-on latency:1.2",
        "memconform diff BENCH-RUN#go/bm25 BENCH-RUN#go/hybrid",
        "memconform diff 'ANSWER-RUN#go hybrid' lme/result-go.json",
    ),
    exit_codes={
        ExitCode.FAILED: "what --fail-on names",
        ExitCode.USAGE: "usage, or runs that cannot be compared",
        ExitCode.DAEMON: "an incident ended one of the runs",
        ExitCode.NOTHING_SELECTED: "no question was measured in both",
        ExitCode.INCONCLUSIVE: "unmeasured questions leave --fail-on undecided",
    },
)
@click.argument("first")
@click.argument("second")
@option(
    "--fail-on",
    group=SCORING,
    multiple=True,
    metavar="regression|latency:RATIO",
    help="Exit 1 if a question that passed no longer does, or if the confidence interval of the"
    " latency ratio lies above RATIO. May be given several times.",
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
@results
@json_file
@schema("results.run_diff:DiffReport", "bench.comparison_records:BenchDiffReport")
@option("--quiet", group=OUTPUT, is_flag=True, help="Show only the summary.")
def command(  # noqa: PLR0917 - one parameter a flag
    first: str,
    second: str,
    fail_on: tuple[str, ...],
    seed: int,
    metric: str | None,
    view: str | None,
    output: Path,
    json_file: str | None,
    quiet: bool,  # noqa: FBT001 - click's signature
) -> ExitCode:
    """Show what changed between two results: regressions, fixes, latency.

    FIRST and SECOND are result files, run folders or run ids of `run`, `answer`, `judge` or `lme`;
    `#SUBJECT` behind one selects an arm, a rubric or an SDK. Of results of `bench`, the rows with
    the same system and strategy are compared; `#SYSTEM/STRATEGY` behind a result selects one.
    """
    limits = [_limit(condition) for condition in fail_on]
    if are_benches((first, second), output, bench_only=(metric, view)):
        rows = (first, second, output, metric, view)
        options = BenchDiffOptions(*rows, limits, seed, json_file, quiet)
        return carry_out("compare_benches:diff", options)
    one, other = load_pair(first, second, output)
    for line in () if quiet else method_lines((one, other)):
        echo(f"  {line}", err=True)
    with StepProgress("comparing", other.summary.total, quiet=quiet) as step:
        report = diff_runs(one, other, seed=seed, on_row=step.advance)
    code = gravest(_codes(report, limits))
    report = report.model_copy(update={"exit_code": code})
    if not quiet:
        show_difference(report)
    if json_file is not None:
        with json_target(json_file) as target:
            target.write_json(report)
    echo(diff_banner(report), err=json_file == "-")
    return code


def _limit(condition: str) -> float | None:
    """Return the ratio of `latency:RATIO`, or None for `regression`."""
    name, colon, ratio = condition.partition(":")
    if condition == "regression":
        return None
    try:
        limit = float(ratio)
    except ValueError:
        limit = 0.0
    if name != "latency" or not colon or not 0 < limit < float("inf"):
        raise UsageError(
            f"--fail-on {condition} is invalid",
            code="bad_fail_on",
            hint="write --fail-on regression, or --fail-on latency:1.2",
        )
    return limit


def _codes(report: DiffReport, limits: Sequence[float | None]) -> list[ExitCode]:
    if report.incidents:
        return [ExitCode.DAEMON]
    if report.contrast.compared == 0:
        return [ExitCode.NOTHING_SELECTED]
    codes = []
    for limit in limits:
        if limit is None:
            failed = bool(report.regressions)
            # A question that was not measured may hide a regression.
            if report.not_measured:
                codes.append(ExitCode.INCONCLUSIVE)
        else:
            done = report.latency.get("done")
            failed = done is not None and done.ratio.low > limit
            # A question that was not measured may be the one that took too long.
            if done is None or report.not_measured or done.questions < report.contrast.compared:
                codes.append(ExitCode.INCONCLUSIVE)
        if failed:
            codes.append(ExitCode.FAILED)
    return codes
