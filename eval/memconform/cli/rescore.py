"""`memconform rescore`."""

from dataclasses import dataclass
from pathlib import Path

import click

from memconform.cli.commands import Command, option
from memconform.cli.judge_options import JudgeFlags, call_options, judge_options
from memconform.cli.lazy import carry_out
from memconform.cli.options import floors, json_file, output, quiet, schema, scorer, strip_reasoning
from memconform.errors import ExitCode


@dataclass(frozen=True, slots=True, kw_only=True)
class RescoreOptions(JudgeFlags):
    """The command line of `rescore`."""

    result: str
    dataset: str | None
    scorer: str | None
    floor: tuple[str, ...]
    output: Path
    json_file: str | None
    quiet: bool
    strip_reasoning: bool


@click.command(
    "rescore",
    cls=Command,
    examples=(
        "memconform rescore results/2026-01-31/go.json",
        "memconform rescore go.json --dataset fixed.jsonl --floor 0.8",
        "memconform rescore go.json --scorer judge --judge fake",
    ),
    exit_codes={
        ExitCode.FAILED: "below a floor",
        ExitCode.DAEMON: "too little was measured, or an incident ended the run",
        ExitCode.NOTHING_SELECTED: "no question to score",
        ExitCode.BUDGET: "the budget is spent; repeat the command to continue from the cache",
    },
)
@click.argument("result")
@option(
    "--dataset",
    group="What to score",
    metavar="SET",
    help="Another version of the dataset, with the same ids in the same order.",
)
@strip_reasoning("What to score")
@scorer(unless_given="that of the run")
@judge_options
@call_options
@floors(unless_given="those of the run")
@output
@json_file
@schema("reports.machine:RunReport")
@quiet
def command(**flags: object) -> ExitCode:
    """Score the stored answers of a run again, without a daemon.

    RESULT is a result file, a run's folder or a run id. The old result is not changed.
    """
    options = RescoreOptions(**flags)  # type: ignore[arg-type] # click has checked every flag
    return carry_out("execute_rescore:run", options)
