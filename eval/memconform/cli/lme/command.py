"""`memconform lme`."""

import click

from memconform.cli.commands import DAEMONS, Command, Group, option
from memconform.cli.lazy import carry_out
from memconform.cli.lme.arbitrate import arbitrate_command
from memconform.cli.lme.options import LmeOptions, replay_options
from memconform.cli.options import sdks, system
from memconform.errors import ExitCode

_CODES = {
    ExitCode.DAEMON: "a daemon failed, or a question was not answered or not judged",
    ExitCode.NOTHING_SELECTED: "no question selected",
    ExitCode.BUDGET: "--max-cost-usd is spent; repeat the command with the same --output",
}


@click.group(
    "lme",
    cls=Group,
    examples=(
        "memconform lme tri --data longmemeval_s.json --sample 50",
        "memconform lme run --data oracle.json --sdk go --ingest-mode bulk",
        "memconform lme arbitrate RESULT --by NAME --sample 50",
    ),
)
def command() -> None:
    """Replay LongMemEval: one shared brain, every SDK, one reader and one judge."""


@command.command(
    "run",
    cls=Command,
    examples=(
        "memconform lme run --data longmemeval_s.json --sample 50 --sdk go",
        "memconform lme run --data longmemeval_s.json --benchmark-mode full-context",
        "memconform lme run --data longmemeval_s.json --extract-only",
    ),
    exit_codes=_CODES,
)
@replay_options
@option(
    "--sdk",
    group=DAEMONS,
    multiple=True,
    metavar="SDK",
    help="SDK whose retrieval is measured: a known name, a path to an sdk.toml, or"
    " package.module:Class.",
)
@system
@option(
    "--actor-endpoint",
    group=DAEMONS,
    metavar="URL[,dialect=NAME]",
    help="Address of a running daemon, instead of --sdk; `dialect` names a shipped dialect or a"
    " TOML file.",
)
@option(
    "--benchmark-mode",
    group="What is replayed",
    multiple=True,
    metavar="MODES",
    show_default="oracle for the oracle file, else real-retrieval",
    help="real-retrieval: what the daemon finds; oracle: the sessions with the answer;"
    " full-context: all sessions that fit, from the newest. Several, separated by commas, stand"
    " side by side; the last two need no daemon.",
)
def run_command(**flags: object) -> ExitCode:
    """Answer LongMemEval's questions from what one SDK retrieves.

    Replies are cached, and retrieval is journalled: the same command with the same --output
    continues after a failure, and pays for no used reply twice.
    """
    return carry_out("lme.execution:run", LmeOptions(**flags, dry_run=False))  # type: ignore[arg-type] # click has validated every flag


@command.command(
    "tri",
    cls=Command,
    examples=(
        "memconform lme tri --data longmemeval_s.json --sample 50",
        "memconform lme tri --data longmemeval_s.json --sdk go --sdk my/sdk.toml",
        "memconform lme tri --data longmemeval_s.json --ingest-mode bulk --judge ''",
    ),
    exit_codes=_CODES | {ExitCode.FAILED: "two SDKs differ significantly"},
)
@replay_options
@sdks(required=False)
@system
def tri_command(**flags: object) -> ExitCode:
    """Compare what SDKs retrieve, with everything else held equal.

    Facts are extracted once. Every SDK, by default all, is filled with its own copy of the same
    brain, asked the same questions, and read and judged by the same models, one after the other.
    """
    return carry_out("lme.execution:tri", LmeOptions(**flags, dry_run=False))  # type: ignore[arg-type] # click has validated every flag


command.add_command(arbitrate_command)
