"""`memconform answer`."""

from functools import partial

import click

from memconform.cli import answer_options as given
from memconform.cli.answer_options import READER, AnswerOptions
from memconform.cli.commands import Command
from memconform.cli.judge_options import call_options, panel_options
from memconform.cli.lazy import carry_out
from memconform.cli.options import json_file, output, quiet, schema, strip_reasoning
from memconform.errors import ExitCode


@click.command(
    "answer",
    cls=Command,
    examples=(
        "memconform answer RUN --reader fake --judge fake",
        "memconform answer RUN#go/hybrid --reader gpt-4o --method con --max-cost-usd 20",
        "memconform answer RUN --reader gpt-4o --arms oracle,no-memory --dry-run",
    ),
    exit_codes={
        ExitCode.DAEMON: "a question was not answered or not judged in some arm",
        ExitCode.NOTHING_SELECTED: "the bench has no question of the benchmark",
        ExitCode.BUDGET: "--max-cost-usd is spent; repeat the command to continue",
    },
)
@click.argument("results", nargs=-1, required=True)
@given.data
@given.arms
@strip_reasoning("What to answer")
@given.top_k
@given.errata
@given.reader
@given.method
@given.history
@given.speakers
@given.unit
@given.context_tokens
@given.seed
@given.prompts
@given.script
@partial(call_options, group=READER)
@panel_options
@given.rubric
@output
@given.hypotheses
@json_file
@schema("bench.answering.records:AnswerReport")
@quiet
def command(**flags: object) -> ExitCode:
    """Answer a benchmark's questions from what systems retrieved, with one reader for all.

    RESULTS are results of `bench` on LongMemEval or LoCoMo: a file, a folder or a run id, with
    #SYSTEM or #SYSTEM/STRATEGY for some of its rows. Beside them stand control arms: what the
    reader answers from the gold evidence, from everything, from nothing.

    Replies are cached: the same command continues after a failure or a spent budget, and pays for
    no used reply twice.
    """
    return carry_out("execute_answer:answer", AnswerOptions(**flags))  # type: ignore[arg-type] # click has validated every flag
