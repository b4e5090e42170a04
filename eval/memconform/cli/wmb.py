"""`memconform wmb`."""

from functools import partial
from pathlib import Path
from typing import get_args

import click

from memconform.cli.commands import DAEMONS, OUTPUT, Group, option
from memconform.cli.judge_options import JUDGE, call_options, panel_options
from memconform.cli.lazy import carry_out
from memconform.cli.options import (
    SECONDS,
    env,
    header,
    json_file,
    log_level,
    output,
    quiet,
    schema,
    upstream,
    writable_file,
)
from memconform.cli.wmb_options import WmbRunOptions, WmbScoreOptions
from memconform.contract.names import Mode
from memconform.datasets.wmb_names import Part
from memconform.errors import ExitCode

_BENCHMARK = "Which questions"
_SEARCH = "How to search"
_RULES = "Which rules"

_DATA = option(
    "--data",
    group=_BENCHMARK,
    metavar="DIR|NAME",
    default="wmb100k",
    help="The folder that holds datasets/ and documents/, or the name of the fetched source.",
)


@click.group(
    "wmb",
    cls=Group,
    examples=(
        "memconform wmb run --data DIR --sdk go --answers answers.json",
        "memconform wmb score answers.json --data DIR --official",
        "memconform wmb run --data DIR --adapter my_adapter.py",
    ),
)
def command() -> None:
    """Run WMB-100K against a memory system, and score the answers by both of its rules.

    docs/WMB.md walks through it, from the data to the table of scores.
    """


@command.command(
    "run",
    examples=(
        "memconform wmb run --data DIR --sdk go --part B --answers answers.json",
        "memconform wmb run --data DIR --sdk go --limit 20",
        "memconform wmb run --data DIR --adapter my_adapter.py --timeout 30",
    ),
    exit_codes={
        ExitCode.DAEMON: "a question was not measured; --resume asks it again",
        ExitCode.NOTHING_SELECTED: "no question selected",
    },
)
@_DATA
@option(
    "--part",
    group=_BENCHMARK,
    type=click.Choice(get_args(Part)),
    show_default="both; B for an adapter",
    help="Ask about the documents (A), the conversations (B), or both.",
)
@option("--ids", group=_BENCHMARK, multiple=True, metavar="ID,…", help="Ask only these questions.")
@option(
    "--category",
    group=_BENCHMARK,
    multiple=True,
    metavar="TYPE",
    help="Ask only questions of this type, such as S1Situational. May be given several times.",
)
@option(
    "--limit",
    group=_BENCHMARK,
    type=click.IntRange(min=1),
    metavar="N",
    help="Ask N questions, evenly spaced.",
)
@option(
    "--sample",
    group=_BENCHMARK,
    type=click.IntRange(min=1),
    metavar="N",
    help="Ask N randomly drawn questions, of each type in proportion.",
)
@option("--seed", group=_BENCHMARK, type=int, default=0, metavar="N", help="Seed of --sample.")
@option(
    "--sdk",
    group=DAEMONS,
    metavar="SDK",
    help="SDK to ask: a known name, a path to an sdk.toml, package.module:Class, or"
    " url:http://127.0.0.1:PORT[,dialect=NAME] for a running daemon.",
)
@option(
    "--adapter",
    group=DAEMONS,
    type=click.Path(path_type=Path),
    metavar="FILE.py",
    help="Ask a Python file with the benchmark's store(user_id, content) and search(user_id, query)"
    " instead. It runs in a process of its own, with your shell's variables.",
)
@env
@header
@option(
    "--mode",
    group=_SEARCH,
    type=click.Choice([mode.value for mode in Mode]),
    default="bm25",
    help="Retrieval mode of the SDK.",
)
@option(
    "-k",
    "top_k",
    group=_SEARCH,
    type=click.IntRange(1, 1_000),
    default=10,
    metavar="K",
    help="Memories to request for a question; an adapter returns as many as it wants.",
)
@option(
    "--index",
    group=_SEARCH,
    type=click.Choice(["isolated", "category"]),
    show_default="isolated; category for an adapter",
    help="`isolated`: one brain for all conversations, and one for all documents. `category`: one"
    " for each category, as published rows of other systems have; a question across two (S3)"
    " searches both.",
)
@upstream
@option(
    "--timeout",
    group=_SEARCH,
    type=SECONDS,
    default=120.0,
    metavar="SECONDS",
    help="Time allowed for a request, or for a call of the adapter.",
)
@option(
    "--resume",
    group=OUTPUT,
    metavar="RUN",
    help="Resume an interrupted run, with the same flags again: what it measured is not asked"
    " again.",
)
@output
@option(
    "--answers",
    group=OUTPUT,
    metavar="FILE",
    callback=writable_file,
    help="Also write the answers to FILE, and their record to FILE's name with .run.json.",
)
@json_file
@schema("bench.wmb.records:WmbRun")
@quiet
@log_level
def run_command(**flags: object) -> ExitCode:
    """Run the questions against an SDK or an adapter, and write answers.json.

    A row of a conversation is a document, and so is each file of the documents. A question whose
    search failed has no row, and is reported as not measured.
    """
    options = WmbRunOptions(**flags)  # type: ignore[arg-type] # click has validated every flag
    return carry_out("execute_wmb_run:run", options, extra="bench")


@command.command(
    "score",
    examples=(
        "memconform wmb score answers.json --data DIR",
        "memconform wmb score answers.json --data DIR --official --max-cost-usd 2",
        "memconform wmb score answers.json --data DIR --judge fake --profile readme",
    ),
    exit_codes={
        ExitCode.DAEMON: "a question was lost, or a judge gave no verdict on it",
        ExitCode.NOTHING_SELECTED: "no answer belongs to a question",
        ExitCode.BUDGET: "the budget is spent; --resume continues",
    },
)
@click.argument("answers", type=click.Path(path_type=Path))
@_DATA
@option(
    "--profile",
    group=_RULES,
    type=click.Choice(["readme", "script", "both"]),
    default="both",
    help="`readme`: the rules that the benchmark states. `script`: what its score.py computes.",
)
@option(
    "--errata",
    group=_RULES,
    metavar="none|NAME|FILE",
    show_default="those that ship, for the public questions",
    help="Questions that are disputed, or that no judge can decide: none, the errata that ship"
    " (wmb), or a JSON file. Scores are shown with and without them.",
)
@option(
    "--official",
    group=JUDGE,
    is_flag=True,
    help="Ask the official panel: gpt-4o-mini, Claude Haiku 4.5 and Gemini 2.0 Flash, of which two"
    " must agree.",
)
@partial(panel_options, judge="gpt-4o-mini")
@option(
    "--prompts",
    group=JUDGE,
    type=click.Choice(["own", "official"]),
    default="own",
    help="Wording of the prompt: memconform's, or that of the authors (--script).",
)
@option(
    "--script",
    group=JUDGE,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The authors' scripts/score.py, from which --prompts official reads the prompt; it is not"
    " executed.",
)
@option(
    "--resume",
    group=JUDGE,
    metavar="RUN",
    help="Continue an interrupted scoring: what it judged is not asked again.",
)
@call_options
@output
@json_file
@schema("bench.wmb.records:WmbScore")
@quiet
def score_command(**flags: object) -> ExitCode:
    """Score the answers of `wmb run`, or anybody's in the benchmark's format.

    Prints score, penalties, grade and accuracies by the README's rules and by the released script,
    side by side, with the rule that makes each difference.
    """
    options = WmbScoreOptions(**flags)  # type: ignore[arg-type] # click has checked every flag
    return carry_out("execute_wmb_score:run_score", options)
