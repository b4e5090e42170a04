"""`memconform datasets expand`."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import get_args

import click

from memconform.cli.commands import OUTPUT, Command, PathType, option
from memconform.cli.judge_options import CallFlags, call_options
from memconform.cli.lazy import carry_out
from memconform.cli.options import json_file, quiet, schema, writable_file
from memconform.errors import ExitCode
from memconform.longmemeval.names import Kind

_WHAT = "What to generate"
_MODEL = "The model"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpandOptions(CallFlags):
    """The command line of `datasets expand`."""

    path: Path
    name: str | None
    kind: Kind
    model: str
    output: str
    json_file: str | None
    quiet: bool


@click.command(
    "expand",
    cls=Command,
    examples=(
        "memconform datasets expand s.json --kind events --model gpt-4o -o events.json",
        "memconform datasets expand s.json --kind ranges --model gpt-4o -o ranges.json",
    ),
    exit_codes={
        ExitCode.DAEMON: "the model gave an entry no usable reply, or cannot be reached",
        ExitCode.BUDGET: "--max-cost-usd is spent; repeat the command to continue",
    },
)
@click.argument("path", type=PathType())
@option(
    "--format",
    "name",
    group=_WHAT,
    metavar="NAME",
    show_default="recognized by content",
    help="Format of PATH; `datasets list` shows the formats.",
)
@option(
    "--kind",
    group=_WHAT,
    required=True,
    type=click.Choice(get_args(Kind)),
    metavar="KIND",
    help="session-summ, session-keyphrase, turn-keyphrase, session-userfact or turn-userfact for"
    " `bench --keys`; events for `--events`; ranges for `--ranges`.",
)
@option(
    "--model",
    group=_MODEL,
    required=True,
    metavar="MODEL",
    help="Model that generates: provider:model (openai, anthropic, gemini, ollama).",
)
@partial(call_options, group=_MODEL)
@option(
    "-o",
    "--output-file",
    "output",
    group=OUTPUT,
    aliases=("--output",),
    required=True,
    metavar="FILE",
    callback=writable_file,
    help="File to write.",
)
@json_file
@schema("longmemeval.records:ExpansionReport")
@quiet
def expand_command(**flags: object) -> ExitCode:
    """Generate keys, events or time ranges of a benchmark, in the format of LongMemEval's authors.

    What is paid for is cached: the same command continues after a failure or a spent budget. The
    file appears once every entry was asked for; FILE.report.json beside it says how it was made.
    """
    return carry_out("datasets.expansion:expand", ExpandOptions(**flags))  # type: ignore[arg-type] # click has validated every flag
