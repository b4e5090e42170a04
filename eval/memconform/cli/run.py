"""`memconform run`."""

from pathlib import Path

import click

from memconform.cli.lazy import carry_out
from memconform.cli.options import (
    SECONDS,
    env,
    floors,
    json_file,
    log_level,
    output,
    schema,
    sdks,
    upstream,
)
from memconform.cli.run_options import EXISTING_BRAIN, SCENARIO_NAMES, RunOptions
from memconform.contract.names import Mode
from memconform.errors import ExitCode

_OWN = "0: the daemon's own."


@click.command("run", context_settings={"show_default": True})
@sdks(required=True)
@click.option(
    "--require-agreement",
    is_flag=True,
    help="Fail where several SDKs were measured and do not rank and answer alike; without it that"
    " is shown, and decides nothing.",
)
@click.option("--scenario", type=click.Choice(SCENARIO_NAMES), default="ask-basic")
@click.option(
    "--mode",
    type=click.Choice([mode.value for mode in Mode]),
    default="auto",
    help="How to retrieve; passed on as it is.",
)
@click.option("--dataset", default="lme", metavar="SET", help="A path, or a shipped name.")
@click.option(
    "--scorer",
    type=click.Choice(["exact", "judge"]),
    default="exact",
    help="exact compares expected strings; judge is not implemented yet.",
)
@click.option("--limit", type=click.IntRange(min=1), help="So many questions, spread evenly.")
@click.option("--ids", multiple=True, metavar="ID,…", help="Only these questions.")
@click.option("--tag", multiple=True, metavar="TAG", help="Only questions with one of these tags.")
@output
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="0 picks a free one; with several SDKs N, N+1, …",
)
@floors
@click.option(
    "--brain",
    help="The brain to ask: what is in it, unless a flag says to recreate it. Without it a run that"
    f" seeds makes a brain of its own, and any other asks {EXISTING_BRAIN!r}.",
)
@click.option(
    "--i-own-this-brain",
    is_flag=True,
    help="Let seeding empty any brain of a url: daemon, not only mc-….",
)
@click.option("--top-k", type=click.IntRange(1, 1000), default=5)
@click.option(
    "--candidate-k", type=click.IntRange(0, 10_000), default=0, help="0: the daemon's own."
)
@click.option(
    "--rerank-top-n", type=click.IntRange(0, 1_000), default=0, help="0: the daemon's own."
)
@click.option(
    "--seed-reference-brain",
    is_flag=True,
    help="Recreate the brain from the dataset's reference answers, one document a row.",
)
@click.option(
    "--corpus",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Recreate the brain from the files of a folder; the dataset's own name is its corpus. With"
    " neither flag and no --brain a daemon that the run starts gets the dataset's own corpus, or"
    " else its reference answers; a url: daemon gets nothing.",
)
@upstream
@env
@click.option("--concurrency", type=click.IntRange(1, 256), default=1, help="Questions in flight.")
@click.option("--timeout", type=SECONDS, default=120.0, help="Seconds for a whole question.")
@click.option("--timeout-connect", type=SECONDS, default=5.0, help="Seconds to connect.")
@click.option("--timeout-first", type=SECONDS, default=30.0, help="Seconds to the first event.")
@click.option("--timeout-gap", type=SECONDS, default=30.0, help="Seconds between two events.")
@click.option(
    "--allow-fallback", is_flag=True, help="Score answers of another mode than the one asked for."
)
@click.option(
    "--reproof/--no-reproof",
    default=True,
    help="Prove the index again while it is asked and at the end, and repeat retrievals that lack"
    " what was expected. Without it only counts are compared, which the result states.",
)
@click.option(
    "--repeat", type=click.IntRange(1, 100), default=1, help="Put each question so many times."
)
@json_file
@click.option(
    "--resume",
    metavar="RUN",
    help="Go on from a run that was cut short, a run id or its folder; what it measured is kept,"
    " what it did not is asked again.",
)
@click.option(
    "--header",
    multiple=True,
    metavar="NAME:VALUE",
    help="Send it with every request; MEMCONFORM_AUTH_TOKEN sends a bearer token. Kept secret.",
)
@click.option("--quiet", is_flag=True, help="No progress and no table.")
@schema("reports.machine:RunReport")
@log_level
def command(**flags: object) -> ExitCode:
    """Start daemons, put a dataset to them, score the answers, hold the floor.

    \b
    Exit codes: 0 ok, 1 below the floor, drift or no agreement, 2 usage, 3 a daemon failed,
    4 nothing selected, 5 nothing to agree with, 70 internal error, 130 interrupted.
    """
    options = RunOptions(**flags)  # type: ignore[arg-type] # click has checked every flag
    return carry_out("execute_run:run", options)
