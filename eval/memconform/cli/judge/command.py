"""`memconform judge`."""

from dataclasses import dataclass
from pathlib import Path

import click

from memconform.cli import options as given
from memconform.cli.commands import REFERENCE, Group, PathType, option
from memconform.cli.judge_options import JUDGE, WHAT, CallFlags, call_options, errata, partial
from memconform.cli.lazy import carry_out
from memconform.cli.options import json_file, output, quiet, results, schema
from memconform.errors import ExitCode


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrateOptions(CallFlags):
    """The command line of `judge calibrate`."""

    judge: str | None
    items: Path | None
    output: Path
    json_file: str | None
    quiet: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions:
    """The command line of `judge compare`."""

    first: str
    second: str
    output: Path
    json_file: str | None
    quiet: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsOptions:
    """The command line of `judge metrics`."""

    log: Path
    data: str
    partial: bool
    errata: str | None
    json_file: str | None


@click.group(
    "judge",
    cls=Group,
    examples=(
        "memconform judge calibrate --judge fake",
        "memconform judge compare RUN RUN",
        "memconform judge metrics answers.jsonl.eval-results-gpt-4o --data oracle.json",
    ),
)
def command() -> None:
    """Measure judges: their errors, their agreement, and logs of their labels."""


@command.command(
    "calibrate",
    examples=(
        "memconform judge calibrate --judge fake",
        "memconform judge calibrate --judge openai:gpt-4o-2024-08-06 --max-cost-usd 1",
    ),
    exit_codes={
        ExitCode.FAILED: "the judge accepts more than 5 % of a group of wrong answers",
        ExitCode.DAEMON: "the judge gave no verdict on some items",
        ExitCode.BUDGET: "the budget is spent; run it again to continue from the cache",
    },
)
@option(
    "--judge",
    group=JUDGE,
    metavar="MODEL",
    show_default="JB_EVAL_JUDGE_MODEL, or gpt-4o",
    help="The judge to calibrate: provider:model, or `fake`.",
)
@option(
    "--set",
    "items",
    group=JUDGE,
    type=PathType(),
    metavar="FILE",
    show_default="the shipped set",
    help="Calibration items, a JSON object a line (docs/JUDGES.md).",
)
@call_options
@output
@json_file
@schema("scoring.judge.calibration:Calibration")
@quiet
def calibrate_command(
    judge: str | None, items: Path | None, output: Path, **flags: object
) -> ExitCode:
    """Measure a judge's error rates on labelled answers, and store them with the results.

    Reports of runs that this judge scores show them, with the pass rate corrected by them.
    """
    options = CalibrateOptions(
        judge=judge,
        items=items,
        output=output,
        **flags,  # type: ignore[arg-type] # click has checked every flag
    )
    return carry_out("judge.execution:run_calibration", options)


@command.command(
    "compare",
    examples=("memconform judge compare results/runs/ID results/runs/ID",),
    exit_codes={ExitCode.NOTHING_SELECTED: "no answer was judged in both runs"},
)
@click.argument("first", type=REFERENCE)
@click.argument("second", type=REFERENCE)
@results
@json_file
@schema("results.judge_comparison:JudgeComparison")
@quiet
def compare_command(**flags: object) -> ExitCode:
    """Compare two judgements of the same answers: agreement, Cohen's kappa, differences.

    FIRST and SECOND are runs of one dataset whose answers are equal, say a run and its `score`
    with another judge; each is a result file, a run's folder or a run id.
    """
    options = CompareOptions(**flags)  # type: ignore[arg-type] # click has checked every flag
    return carry_out("judge.execution:run_comparison", options)


@command.command(
    "metrics",
    examples=("memconform judge metrics answers.jsonl.eval-results-gpt-4o --data oracle.json",),
    exit_codes={ExitCode.DAEMON: "the log lacks a question"},
)
@click.argument("log", type=PathType())
@given.data(
    WHAT,
    "The questions: LongMemEval's oracle, S or M, or the name of a fetched source.",
    required=True,
)
@partial
@errata
@json_file
@schema("bench.qa.records:QaMetrics")
def metrics_command(log: Path, **flags: object) -> ExitCode:
    """Print the scores of a log that evaluate_qa.py or `score --log` wrote.

    No model is called.
    """
    options = MetricsOptions(log=log, **flags)  # type: ignore[arg-type] # click has checked every flag
    return carry_out("score.benchmark_answers:run_metrics", options)
