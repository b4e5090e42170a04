"""`memconform judge longmemeval`, `judge locomo` and `judge metrics`."""

from pathlib import Path

import click

from memconform.cli import benchmark_options, qa_options
from memconform.cli.commands import Command
from memconform.cli.judge_options import call_options, panel_options
from memconform.cli.lazy import carry_out
from memconform.cli.options import json_file, output, quiet, schema, strip_reasoning
from memconform.cli.qa_options import MetricsOptions, QaOptions
from memconform.errors import ExitCode

_EXIT_CODES = {
    ExitCode.DAEMON: "an answer is missing, or a judge gave no verdict on one",
    ExitCode.NOTHING_SELECTED: "no answer belongs to a question",
    ExitCode.BUDGET: "the budget is spent; --resume continues",
}


@click.command(
    "longmemeval",
    cls=Command,
    examples=(
        "memconform judge longmemeval --hypotheses FILE --data longmemeval_oracle",
        "memconform judge longmemeval --hypotheses F --data D --rubric lenient,strict",
        "memconform judge longmemeval --hypotheses F --data D --resume RUN",
    ),
    exit_codes=_EXIT_CODES,
)
@qa_options.hypotheses
@qa_options.data("LongMemEval's oracle, S or M")
@strip_reasoning("What to score")
@qa_options.partial
@qa_options.errata
@benchmark_options.rubrics(unless_given="longmemeval")
@qa_options.prompts
@qa_options.script
@qa_options.resume
@panel_options
@call_options
@output
@qa_options.log
@json_file
@schema("bench.qa.records:QaReport")
@quiet
def longmemeval_command(**flags: object) -> ExitCode:
    """Score stored answers to LongMemEval by its rubric for each type of question.

    Reports accuracy overall, by type, averaged over types, and on the questions that cannot be
    answered, and what the authors' print_qa_metrics.py prints.
    """
    options = QaOptions(suite="longmemeval", **flags)  # type: ignore[arg-type] # click has checked every flag
    return carry_out("execute_qa:run_scoring", options)


@click.command(
    "locomo",
    cls=Command,
    examples=(
        "memconform judge locomo --hypotheses answers.jsonl --data locomo",
        "memconform judge locomo --hypotheses F --data D --judge fake --rubric lenient",
    ),
    exit_codes=_EXIT_CODES,
)
@qa_options.hypotheses
@qa_options.data("LoCoMo's locomo10.json")
@qa_options.prediction
@strip_reasoning("What to score")
@qa_options.partial
@qa_options.errata
@benchmark_options.rubrics(unless_given="strict if --judge is given, otherwise none")
@qa_options.resume
@panel_options
@call_options
@output
@json_file
@schema("bench.qa.records:QaReport")
@quiet
def locomo_command(**flags: object) -> ExitCode:
    """Score stored answers to LoCoMo by its official F1, BLEU-1, and judges if any are named.

    Question ids are the conversation's with the number of the question, such as conv-26#0. Needs
    pip install 'memconform[qa]'.
    """
    options = QaOptions(suite="locomo", **flags)  # type: ignore[arg-type] # click has checked every flag
    return carry_out("execute_qa:run_scoring", options, extra="qa")


@click.command(
    "metrics",
    cls=Command,
    examples=("memconform judge metrics answers.jsonl.eval-results-gpt-4o --data oracle.json",),
    exit_codes={ExitCode.DAEMON: "the log lacks a question"},
)
@click.argument("log", type=click.Path(path_type=Path))
@qa_options.data("LongMemEval's oracle, S or M")
@qa_options.partial
@qa_options.errata
@json_file
@schema("bench.qa.records:QaMetrics")
def metrics_command(log: Path, **flags: object) -> ExitCode:
    """Print the scores of a log that evaluate_qa.py or `judge longmemeval --log` wrote.

    No model is called.
    """
    options = MetricsOptions(log=log, **flags)  # type: ignore[arg-type] # click has checked every flag
    return carry_out("execute_qa:run_metrics", options)
